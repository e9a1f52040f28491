package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// audited starts up with an audit log, whose path it returns, and a key for a caller.
func audited(t *testing.T, gateway string, servers map[string]any, flags ...string) (r *running, log string, header http.Header) {
	t.Helper()
	runtimeFolder(t)
	dir := t.TempDir()
	key, entry := auth.NewAPIKey("ada")
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"keys.jsonl":   string(line),
		"gateway.yaml": gateway,
		"rules.yaml":   "default: allow\nrules:\n  - {name: no hanging, when: name == \"hang\", effect: deny}\n  - {name: few, when: 'name == \"args\" && arguments.count > 100', effect: deny}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r = startUp(t, servers, append([]string{"--gateway", filepath.Join(dir, "gateway.yaml")}, flags...)...)
	return r, filepath.Join(dir, "audit.jsonl"), http.Header{"Authorization": {"Bearer " + key}}
}

// stop ends up as ctrl-C does. On Windows a program cannot be interrupted so, and the rest of the test, which looks at what is
// left, is skipped.
func (r *running) stop(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		r.cmd.Process.Kill()
		r.cmd.Wait()
		t.Skip("up cannot be interrupted")
	}
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	r.cmd.Wait()
}

// facts returns what the lines of an audit log say about requests.
func facts(t *testing.T, path string) (list []string) {
	t.Helper()
	for e, err := range audit.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case audit.Node, audit.Config, audit.Checkpoint:
			continue
		}
		fact := fmt.Sprintf("%s %s%s %s", e.Kind, e.Method, e.Tool, e.Outcome)
		if e.Attempt > 0 {
			fact += fmt.Sprint(e.Attempt)
		}
		if e.Decision != nil && e.Decision.Effect == "deny" {
			fact += " by " + e.Decision.Rule
		}
		if e.Principal == nil || e.Principal.ID != "apikey#ada" || e.Team != "dev" || e.Client == nil || e.Client.Name != "desk" || e.Client.IP != "127.0.0.1" {
			fact += fmt.Sprintf(" without its caller: %+v", e)
		}
		list = append(list, strings.TrimSpace(fact))
	}
	return list
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The audit log of a gateway has each request, how it ended and why.
func TestUpAudit(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_06_18, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			r, log, header := audited(t, `
auth: [apikeys:keys.jsonl]
policy: rules.yaml
limits: ["tool:all_echo=1/h"]
teams: {from: principal.id, members: {dev: ["apikey#*"]}}
audit: {file: audit.jsonl, key: audit.key, checkpoint: 1s}
`, map[string]any{"stub": stubServer(t), "all": map[string]any{"builtin": "everything"}}, "--log", "access.jsonl")
			t.Cleanup(func() { os.Remove("access.jsonl") })
			c := &mcp.Client{Name: "desk", Version: "1", Header: header, Revisions: []mcp.Revision{rev}}
			c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			var session atomic.Pointer[string] // its id; 2026-07-28 has none
			c.HTTPClient = &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
				res, err := http.DefaultTransport.RoundTrip(r)
				if err == nil && res.Header.Get("Mcp-Session-Id") != "" {
					id := res.Header.Get("Mcp-Session-Id")
					session.Store(&id)
				}
				return res, err
			})}
			s, err := c.Dial(t.Context(), r.url)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				for _, err := range s.Tools(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, call := range []struct {
				tool string
				args map[string]any
				want string // in the error
			}{
				{"stub_args", map[string]any{"count": 1}, ""},
				{"stub_args", map[string]any{"count": 101}, "few"},
				{"stub_hang", nil, "hang"},
				{"stub_none", nil, "none"},
				{"all_echo", map[string]any{"message": "x"}, ""},
				{"all_echo", map[string]any{"message": "x"}, "than 1/h"},
				{"all_test_elicitation", map[string]any{"message": "Who?"}, ""},
			} {
				if _, err := s.CallTool(t.Context(), call.tool, call.args); (err == nil) != (call.want == "") || err != nil && !strings.Contains(err.Error(), call.want) {
					t.Errorf("%s has the error %v, want %q", call.tool, err, call.want)
				}
			}
			s.Close()
			r.stop(t)
			want := []string{
				"list tools/list ok", "list tools/list ok",
				"call.begin args", "call.end args ok",
				"denied args denied by few",
				"denied hang denied by no hanging",
				"call.end none error",
				"call.begin echo", "call.end echo ok",
				"denied echo denied",
				"call.begin test_elicitation", "call.end test_elicitation ok",
			}
			if rev == mcp.V2026_07_28 { // it comes back with the answer
				want = slices.Insert(want, len(want)-1, "call.retry test_elicitation 2")
			}
			if got := facts(t, log); !slices.Equal(got, want) {
				t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			ids, sessions := map[string]bool{}, map[string]bool{}
			for e := range audit.Read(log) {
				if e != nil && e.Kind == audit.CallBegin && len(e.Definition) != len("sha256:")+64 {
					t.Errorf("a begin has not the definition of its tool: %s", e.Line())
				}
				if e != nil && e.Client != nil {
					sessions[e.Client.Session] = true
				}
				if e != nil && e.Tool == "test_elicitation" {
					ids[e.Call] = true
				}
			}
			if len(ids) != 1 {
				t.Errorf("the call with a question has the ids %v, want one", ids)
			}
			digest := "" // of the id of the session, in each line of the client
			if id := session.Load(); id != nil {
				digest = fmt.Sprintf("sha256:%.8x", sha256.Sum256([]byte(*id)))
				if raw, err := os.ReadFile(log); err != nil || bytes.Contains(raw, []byte(*id)) {
					t.Errorf("the log has the id of the session (%v)", err)
				}
			}
			if (digest == "") != (rev == mcp.V2026_07_28) || !sessions[digest] || len(sessions) != 1 {
				t.Errorf("the lines have the sessions %v, want %q", sessions, digest)
			}
			key, err := audit.LoadPublicKey(filepath.Join(filepath.Dir(log), "audit.key.pub"))
			if err != nil {
				t.Fatal(err)
			}
			if whole, err := audit.Verify([]string{log}, &audit.VerifyOptions{Key: key}); err != nil || !whole.Whole() || whole.Checkpoints == 0 {
				t.Errorf("%+v, %v", whole, err)
			}
			access, err := os.ReadFile("access.jsonl")
			if err != nil || strings.Count(string(access), `"outcome":"denied"`) != 3 || !strings.Contains(string(access), `"tool":"stub_hang"`) {
				t.Errorf("the access log has %s, %v", access, err)
			}
		})
	}
}
