package main

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// spread sends each request to the next of several gateways, as a load balancer does that knows no callers.
type spread struct {
	hosts []string
	next  atomic.Int64
}

func (s *spread) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = s.hosts[int(s.next.Add(1))%len(s.hosts)]
	r.Host = r.URL.Host
	return http.DefaultTransport.RoundTrip(r)
}

// The table of docs/deploy.md about several gateways with the same files: what works while requests are spread over all of them, and what
// needs each caller at one. TestUpLoginFolder has the row about logins.
func TestSeveralGateways(t *testing.T) {
	alone(t)
	runtimeFolder(t)
	servers := map[string]any{"c": map[string]any{"builtin": "conjugate"}, "shop": map[string]any{"builtin": "shop"}, "all": map[string]any{"builtin": "everything"}}
	var urls, hosts []string
	for range 2 {
		file := filepath.Join(t.TempDir(), "gateway.yaml")
		writeConfig(t, filepath.Join(filepath.Dir(file), "mcp.json"), servers)
		if err := os.WriteFile(file, []byte(`{servers: mcp.json, listen: {http: "127.0.0.1:0"}, limits: ["tool:c_conjugate=1/h"]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		r := beginUp(t, "up", "--gateway", file)
		at, err := url.Parse(r.url)
		if err != nil {
			t.Fatal(err)
		}
		urls, hosts = append(urls, r.url), append(hosts, at.Host)
	}
	asked := 0
	dial := func(to http.RoundTripper, url string, rev mcp.Revision) (*mcp.Session, error) {
		c := &mcp.Client{
			Name: "test", Revisions: []mcp.Revision{rev}, HTTPClient: &http.Client{Transport: to},
			OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked++
				return &mcp.ElicitResult{Action: "decline"}, nil
			},
		}
		s, err := c.Dial(t.Context(), url)
		if err == nil {
			t.Cleanup(func() { s.Close() })
		}
		return s, err
	}
	session := func(to http.RoundTripper, url string, rev mcp.Revision) *mcp.Session {
		t.Helper()
		s, err := dial(to, url, rev)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	call := func(s *mcp.Session, tool string, args any) error {
		res, err := s.CallTool(t.Context(), tool, args)
		if err == nil && res.IsError {
			t.Errorf("%s: %s", tool, res.Text())
		}
		return err
	}
	verb := map[string]any{"verb": "go", "tense": "simple future", "person": "1st singular"}
	trip := map[string]any{"date": "2099-06-01"}

	one := session(http.DefaultTransport, urls[0], mcp.V2026_07_28)
	if err := call(one, "c_conjugate", verb); err != nil {
		t.Errorf("the first call: %v", err)
	}
	if err := call(one, "c_conjugate", verb); err == nil {
		t.Error("the limit does not bind the second call of a caller at one gateway")
	}
	other := session(http.DefaultTransport, urls[1], mcp.V2026_07_28)
	if err := call(other, "c_conjugate", verb); err != nil {
		t.Errorf("the limit of another gateway: %v", err)
	}
	for _, rev := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_06_18} {
		before := asked
		if err := call(session(http.DefaultTransport, urls[0], rev), "shop_book-trip", trip); err != nil || asked != before+1 {
			t.Errorf("%s: a question at one gateway: %v, asked %d times", rev, err, asked-before)
		}
	}
	task, err := one.StartTask(t.Context(), "all_slow_compute", map[string]any{"seconds": 0})
	if err != nil || task.ID == "" {
		t.Fatalf("task = %+v, %v", task, err)
	}
	if _, err := one.Task(task.ID).Info(t.Context()); err != nil {
		t.Errorf("the task at its gateway: %v", err)
	}
	if info, err := other.Task(task.ID).Info(t.Context()); err == nil {
		t.Errorf("the other gateway knows the task: %+v", info)
	}

	all := &spread{hosts: hosts}
	s := session(all, urls[0], mcp.V2026_07_28)
	for range 4 {
		if err := call(s, "all_echo", map[string]any{"message": "hi"}); err != nil {
			t.Errorf("a call of 2026-07-28, spread: %v", err)
		}
	}
	if err := call(s, "shop_book-trip", trip); err == nil || !strings.Contains(err.Error(), "requestState is invalid or expired") {
		t.Errorf("a question of 2026-07-28, spread: %v", err)
	}
	s, err = dial(all, urls[0], mcp.V2025_06_18)
	for n := 0; err == nil; n++ {
		if err = call(s, "all_echo", map[string]any{"message": "hi"}); n == 10 {
			t.Fatal("a session before 2026-07-28 works although its requests are spread")
		}
	}
	t.Log(err)
}
