package launch

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// web serves a server with the tool "which", which returns a name.
func web(t *testing.T, name string) *httptest.Server {
	t.Helper()
	srv := &mcp.Server{Name: "work", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "which"}, func(context.Context, struct{}) (string, error) { return name, nil })
	hs := httptest.NewServer(srv)
	t.Cleanup(hs.Close)
	return hs
}

func ask(t *testing.T, g *gateway.Gateway, tool string) (string, error) {
	t.Helper()
	s, err := (&mcp.Client{Name: "caller", Version: "1"}).Open(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(t.Context(), tool, nil)
	if err != nil {
		return "", err
	}
	return res.Text(), nil
}

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("did not happen: " + what)
		}
	}
}

// A server with replicas is one server of the gateway. If one replica dies, calls go to the other, and
// the breaker is reported.
func TestReplicasOfEntry(t *testing.T) {
	a, b := web(t, "a"), web(t, "b")
	var mu sync.Mutex
	var told []spread.Status
	f := &Servers{Env: &Env{}, Gateway: &gateway.Gateway{Name: "g", Version: "1"}, Replica: func(server string, s spread.Status) {
		mu.Lock()
		defer mu.Unlock()
		if server == "work" {
			told = append(told, s)
		}
	}}
	defer f.Close()
	entry := config.Server{Name: "work", URL: a.URL, Replicas: []string{b.URL}, Breaker: config.Breaker{On: true, Failures: 2, Calls: 4}}
	f.Set([]config.Server{entry, {Name: "alone", URL: a.URL}}, nil, "")
	seen := map[string]bool{}
	soon(t, "both replicas answer", func() bool {
		name, err := ask(t, f.Gateway, "work_which")
		seen[name] = err == nil
		return seen["a"] && seen["b"]
	})
	if got := f.Replicas("alone"); got != nil {
		t.Errorf("a server without replicas has %v", got)
	}
	a.CloseClientConnections()
	a.Close()
	soon(t, "the breaker opens", func() bool {
		if name, err := ask(t, f.Gateway, "work_which"); err == nil && name != "b" {
			t.Fatalf("the answer is from %q", name)
		}
		return f.Replicas("work")[0].Breaker.Open
	})
	for range 20 {
		if name, err := ask(t, f.Gateway, "work_which"); name != "b" {
			t.Fatalf("%q, %v", name, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 1 || !told[0].Breaker.Open || told[0].Name != strings.TrimPrefix(a.URL, "http://") {
		t.Errorf("told %+v", told)
	}
}

// Servers of one group are one server with the name of the group. A group with another member is another
// server, and a name that is that of a server and of a group is a fault.
func TestGroupOfEntries(t *testing.T) {
	a, b := web(t, "a"), web(t, "b")
	f := &Servers{Env: &Env{}, Gateway: &gateway.Gateway{Name: "g", Version: "1"}, Groups: true}
	defer f.Close()
	one := config.Server{Name: "one", URL: a.URL, Group: "work", Trusted: true}
	two := config.Server{Name: "two", URL: b.URL, Group: "work", Required: true, DisabledTools: []string{"other"}}
	if got := f.Set([]config.Server{one}, nil, ""); !slices.Equal(got, []string{"+ work"}) {
		t.Fatalf("changes %q", got)
	}
	if name, err := ask(t, f.Gateway, "work_which"); name != "a" {
		t.Fatalf("a group with one member: %q, %v", name, err)
	}
	if got := f.Set([]config.Server{one, two}, nil, ""); !slices.Equal(got, []string{"~ work"}) || !f.Requires("work") {
		t.Fatalf("changes %q, required: %v", got, f.Requires("work"))
	}
	seen := map[string]bool{}
	soon(t, "both members answer", func() bool {
		name, err := ask(t, f.Gateway, "work_which")
		seen[name] = err == nil
		return seen["a"] && seen["b"]
	})
	if list := f.Replicas("work"); len(list) != 2 || list[0].Name != "one" || list[1].Name != "two" {
		t.Errorf("replicas %+v", list)
	}
	if entry := f.list[0]; entry.Trusted || entry.offers()("other") || !entry.offers()("which") {
		t.Errorf("trusted %v; a group has the least of its members", entry.Trusted)
	}
	if got := f.Set([]config.Server{one, two}, nil, ""); len(got) > 0 {
		t.Errorf("the same servers: changes %q", got)
	}
	var notes []string
	f.Env.Note = func(text string) { notes = append(notes, text) }
	clash := config.Server{Name: "work", URL: a.URL, Source: "mcp.json:7"}
	if got := f.Set([]config.Server{one, two, clash}, nil, ""); len(got) > 0 || len(notes) != 1 || !strings.Contains(notes[0], "a group of other servers has its name (mcp.json:7)") {
		t.Errorf("with a fault: changes %q, notes %q", got, notes)
	}
	if got := f.Set([]config.Server{one, {Name: "other", Group: "x", URL: a.URL}, {Name: "x", URL: b.URL, Source: "mcp.json:7"}}, nil, ""); !slices.Contains(got, "~ work") {
		t.Errorf("without a member: changes %q", got)
	}
}

// A single server has a breaker with "breaker": true, which refuses calls while the server fails, and replicas have
// none with "breaker": false: each call is sent.
func TestBreakerIsSet(t *testing.T) {
	var sent atomic.Int64
	failing := func() string {
		srv := &mcp.Server{Name: "work", Version: "1"}
		mcp.AddTool(srv, mcp.Tool{Name: "which"}, func(context.Context, struct{}) (string, error) {
			sent.Add(1)
			return "", mcp.Errorf(jsonrpc.CodeInternal, "out of order")
		})
		hs := httptest.NewServer(srv)
		t.Cleanup(hs.Close)
		return hs.URL
	}
	a, b := failing(), failing()
	var mu sync.Mutex
	told := map[string]int{}
	f := &Servers{Env: &Env{}, Gateway: &gateway.Gateway{Name: "g", Version: "1"}, Replica: func(server string, s spread.Status) {
		mu.Lock()
		defer mu.Unlock()
		if s.Breaker.Open && s.Name == server || server == "none" {
			told[server]++
		}
	}}
	defer f.Close()
	f.Set([]config.Server{
		{Name: "single", URL: a, Breaker: config.Breaker{On: true, Failures: 2, Calls: 2, For: time.Hour}},
		{Name: "none", URL: a, Replicas: []string{b}, Breaker: config.Breaker{Off: true, Failures: 1, Calls: 1}},
	}, nil, "")
	soon(t, "the replicas are connected", func() bool {
		all := f.Replicas("none")
		return len(all) == 2 && all[0].Conns > 0 && all[1].Conns > 0
	})
	// while calls may still say that the server is starting
	soon(t, "the breaker of a single server opens", func() bool {
		_, _ = ask(t, f.Gateway, "single_which")
		return f.Replicas("single")[0].Breaker.Open
	})
	if n := sent.Swap(0); n < 2 || n > 3 { // a list or a read that is answered between two calls counts too
		t.Errorf("the breaker has opened after %d calls, want 2, or 3", n)
	}
	if _, err := ask(t, f.Gateway, "single_which"); err == nil || !strings.Contains(err.Error(), "has failed too often") || sent.Load() != 0 {
		t.Errorf("while it is open: %v", err)
	}
	for range 20 {
		if _, err := ask(t, f.Gateway, "none_which"); err == nil || !strings.Contains(err.Error(), "out of order") {
			t.Fatalf("without a breaker: %v", err)
		}
	}
	if n := sent.Load(); n != 20 {
		t.Errorf("%d of 20 calls were sent without a breaker", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if told["single"] != 1 || told["none"] != 0 {
		t.Errorf("told %v", told)
	}
}
