package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// farm starts numbered servers for a Source.
type farm struct {
	rev   mcp.Revision                    // spoken by the servers
	open  func(ctx context.Context) error // nil: it succeeds at once
	more  func(n int, server *mcp.Server) // adds features; may be nil
	url   string                          // of one server in place of them; empty: none
	raw   func(jsonrpc.Conn)              // serves in place of them; nil: they do
	share gateway.Share                   // of twoGateways

	mu      sync.Mutex
	started int
	running map[int]jsonrpc.Conn
}

func (f *farm) Open(ctx context.Context) (gateway.Upstream, error) {
	f.mu.Lock()
	f.started++
	n := f.started
	f.mu.Unlock()
	if f.open != nil {
		if err := f.open(ctx); err != nil {
			return nil, err
		}
	}
	c := &mcp.Client{Name: "gw", Version: "1"}
	if f.rev != "" {
		c.Revisions = []mcp.Revision{f.rev}
	}
	gateway.Relay(ctx, c)
	if f.url != "" {
		return c.Dial(ctx, f.url)
	}
	s := newsServer("news")
	mcp.AddTool(s, mcp.Tool{Name: "which"}, func(context.Context, struct{}) (string, error) { return fmt.Sprint(n), nil })
	if f.more != nil {
		f.more(n, s)
	}
	near, far := jsonrpc.Pipe()
	f.mu.Lock()
	if f.running == nil {
		f.running = map[int]jsonrpc.Conn{}
	}
	f.running[n] = far
	f.mu.Unlock()
	go func() {
		if f.raw != nil {
			f.raw(far)
		} else {
			s.Serve(context.WithoutCancel(ctx), far)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.running, n)
	}()
	return c.Connect(ctx, mcptest.Wire(near))
}

// kill ends a server.
func (f *farm) kill(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[n].Close()
}

// alive returns the numbers of the running servers.
func (f *farm) alive() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for n := 1; n <= f.started; n++ {
		if f.running[n] != nil {
			all = append(all, fmt.Sprint(n))
		}
	}
	return strings.Join(all, " ")
}

// run runs a source until the test ends.
func run(t *testing.T, g *gateway.Gateway, src gateway.Source) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := g.Run(ctx, src); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	synctest.Wait()
	return stop
}

// connect opens a session with a gateway.
func connect(t *testing.T, g *gateway.Gateway, rev mcp.Revision) *mcp.Session {
	t.Helper()
	return mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, &mcp.Client{Name: "c", Version: "1"}, rev)
}

// which returns the number of the server that answers a caller.
func which(t *testing.T, s *mcp.Session) string {
	t.Helper()
	res, err := s.CallTool(t.Context(), "db_which", nil)
	if err != nil {
		return err.Error()
	}
	return res.Text()
}

func state(g *gateway.Gateway) string {
	all := g.Status()
	if len(all) != 1 {
		return fmt.Sprint(all)
	}
	return string(all[0].State)
}

func tools(t *testing.T, s *mcp.Session) (n int) {
	t.Helper()
	for _, err := range s.Tools(t.Context(), mcp.WithoutCache()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestWhoSharesAConnection(t *testing.T) {
	for _, tt := range []struct {
		name     string
		back     mcp.Revision
		share    gateway.Share
		front    mcp.Revision
		one, two string // servers that two callers reach
		alive    string
	}{
		{"a server of 2026-07-28", mcp.V2026_07_28, gateway.ShareAuto, mcp.V2025_11_25, "1", "1", "1"},
		{"an older one, two sessions", mcp.V2025_11_25, gateway.ShareAuto, mcp.V2025_06_18, "2", "3", "1 2 3"},
		{"an older one, the same principal", mcp.V2025_11_25, gateway.ShareAuto, mcp.V2026_07_28, "2", "2", "1 2"},
		{"an older one, shared", mcp.V2025_11_25, gateway.Shared, mcp.V2025_06_18, "1", "1", "1"},
		{"a new one, per client", mcp.V2026_07_28, gateway.PerClient, mcp.V2025_06_18, "2", "3", "1 2 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &farm{rev: tt.back}
				g := &gateway.Gateway{Name: "gw"}
				stop := run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: tt.share})
				one, two := connect(t, g, tt.front), connect(t, g, tt.front)
				for range 2 {
					if a, b := which(t, one), which(t, two); a != tt.one || b != tt.two {
						t.Errorf("the callers reach %s and %s, want %s and %s", a, b, tt.one, tt.two)
					}
				}
				if got := f.alive(); got != tt.alive {
					t.Errorf("servers %s run, want %s", got, tt.alive)
				}
				if tt.one != tt.two {
					one.Close()
					synctest.Wait()
					if got, want := f.alive(), "1 3"; got != want {
						t.Errorf("servers %s run after the end of a session, want %s", got, want)
					}
				}
				if st := g.Status()[0]; st.Share == gateway.ShareAuto || st.Revision != tt.back || st.Server.Name != "news" || st.Tools != 3 {
					t.Errorf("status = %+v", st)
				}
				stop()
				synctest.Wait()
				if got := f.alive(); got != "" {
					t.Errorf("servers %s run after the end", got)
				}
			})
		})
	}
}

func TestIdleServersAreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{rev: mcp.V2026_07_28}
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open, Idle: time.Minute})
		s := connect(t, g, mcp.V2025_11_25)
		time.Sleep(50 * time.Second)
		if got := which(t, s); got != "1" {
			t.Fatalf("call = %s", got)
		}
		time.Sleep(59 * time.Second)
		if got := state(g); got != "ready" {
			t.Errorf("%s before its time", got)
		}
		time.Sleep(2 * time.Second)
		if got := state(g) + f.alive(); got != "idle" {
			t.Errorf("%s, want idle and none running", got)
		}
		if n := tools(t, s); n != 3 || f.alive() != "" {
			t.Errorf("%d tools of an idle server, want 3, and server %q runs", n, f.alive())
		}
		if got := which(t, s); got != "2" {
			t.Errorf("call of an idle server = %s, want 2", got)
		}

		// A subscription keeps it.
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		events := make(chan mcp.Event, 100)
		go func() {
			for e := range s.Watch(ctx, "news://front") {
				events <- e
			}
		}()
		time.Sleep(time.Hour)
		if got := state(g) + " " + f.alive(); got != "ready 2" {
			t.Errorf("%s while a resource is watched, want ready 2", got)
		}
		cancel()
		time.Sleep(2 * time.Minute)
		if got := state(g); got != "idle" {
			t.Errorf("%s after that, want idle", got)
		}
	})
}

func TestSlowStartsCrashesAndFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		var mu sync.Mutex
		g := &gateway.Gateway{Name: "gw", OnStatus: func(s gateway.Status) {
			mu.Lock()
			defer mu.Unlock()
			if len(seen) == 0 || seen[len(seen)-1] != string(s.State) {
				seen = append(seen, string(s.State))
			}
		}}
		opening := make(chan error)
		f := &farm{rev: mcp.V2026_07_28, open: func(ctx context.Context) error {
			select {
			case err := <-opening:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		stop := run(t, g, gateway.Source{Name: "db", Open: f.Open, StartTimeout: 30 * time.Second,
			Stderr: func() string { return "installing…" }})
		s := connect(t, g, mcp.V2026_07_28)
		time.Sleep(20 * time.Second)
		if st := g.Status()[0]; st.State != gateway.Starting || !strings.Contains(st.Reason, "installing") {
			t.Errorf("a slow start is %+v", st)
		}
		go func() { opening <- nil }()
		if got := which(t, s); got != "1" { // it waits
			t.Errorf("call while it starts = %s", got)
		}

		// An end after a while is a restart.
		time.Sleep(time.Hour)
		f.kill(1)
		synctest.Wait()
		if n := tools(t, s); n != 3 || state(g) != "starting" {
			t.Errorf("%d tools while it is %s again, want 3", n, state(g))
		}
		opening <- nil
		time.Sleep(time.Second)

		// Ends soon after the start are a crash loop.
		for n := 2; n <= 4; n++ {
			f.kill(n)
			opening <- nil
			time.Sleep(time.Second)
		}
		st := g.Status()[0]
		if st.State != gateway.Crashing || !strings.Contains(st.Reason, "3 times") || !strings.Contains(st.Reason, "installing") || st.Restarts != 4 {
			t.Errorf("after 3 deaths it is %+v", st)
		}
		if got := which(t, s); got != "5" { // it may still last
			t.Errorf("call = %s", got)
		}
		if n := tools(t, s); n != 0 {
			t.Errorf("%d tools of a server that is crashing", n)
		}
		time.Sleep(time.Minute)
		if n := tools(t, s); n != 3 || state(g) != "ready" {
			t.Errorf("%d tools and %s after a minute of life", n, state(g))
		}

		// It cannot be reached.
		f.kill(5)
		opening <- errors.New("no such file")
		synctest.Wait()
		if got := which(t, s); !strings.Contains(got, `is failing: no such file; it last said:`) {
			t.Errorf("call of a server that is failing = %s", got)
		}
		if n := tools(t, s); n != 0 {
			t.Errorf("%d tools of a server that is failing", n)
		}
		time.Sleep(time.Hour)
		if st := g.Status()[0]; st.State != gateway.Failing || !strings.Contains(st.Reason, "not ready within 30s") {
			t.Errorf("it is %+v", st)
		}
		stop()
		if got := which(t, s); !strings.Contains(got, "no server offers") {
			t.Errorf("call after the end = %s", got)
		}
		mu.Lock()
		defer mu.Unlock()
		if got, want := strings.Join(seen, " "), "starting ready starting ready starting ready starting ready crashing ready starting failing stopped"; got != want {
			t.Errorf("told of %s, want %s", got, want)
		}
	})
}

// A list waits only once for a server that does not answer, and contains it again when it answers.
func TestASlowServerDelaysOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		slow := false
		handler := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			mu.Lock()
			wait := slow
			mu.Unlock()
			if wait {
				select {
				case <-time.After(30 * time.Second):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return mcp.RawResult(`{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`), nil
		})
		g := newGateway(t, map[string]mcp.Handler{"fast": newsServer("n"), "slow": handler}, "fast", "slow")
		count := func() (n int, took time.Duration) {
			start := time.Now()
			res, err := g.Handle(t.Context(), &mcp.Request{Method: "tools/list"})
			if err != nil {
				t.Fatal(err)
			}
			var list struct{ Tools []json.RawMessage }
			if err := json.Unmarshal(res.JSON(), &list); err != nil {
				t.Fatal(err)
			}
			return len(list.Tools), time.Since(start)
		}
		if n, took := count(); n != 3 || took != 0 {
			t.Errorf("%d tools after %v", n, took)
		}
		mu.Lock()
		slow = true
		mu.Unlock()
		if n, took := count(); n != 2 || took != 10*time.Second {
			t.Errorf("%d tools after %v, want 2 after 10s", n, took)
		}
		if n, took := count(); n != 2 || took != 0 {
			t.Errorf("%d tools after %v, want 2 at once", n, took)
		}
		time.Sleep(31 * time.Second)
		mu.Lock()
		slow = false
		mu.Unlock()
		if n, took := count(); n != 3 || took != 0 {
			t.Errorf("%d tools after %v, want 3 at once", n, took)
		}
	})
}

// However many callers listen, a server has one subscription; its events refresh the kept lists
// (T-53).
func TestOneSubscriptionIsForAll(t *testing.T) {
	for _, back := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			listens := 0
			var server *mcp.Server
			f := &farm{rev: back, more: func(_ int, s *mcp.Server) {
				server = s
				s.Use(func(next mcp.Handler) mcp.Handler {
					return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
						if req.Method == "subscriptions/listen" {
							mu.Lock()
							listens++
							mu.Unlock()
						}
						return next.Handle(ctx, req)
					})
				})
			}}
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "db", Open: f.Open})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var all []*listening
			for _, rev := range mcp.Revisions() {
				l := startListening(ctx, t, connect(t, g, rev))
				l.want("notifications/subscriptions/acknowledged")
				all = append(all, l)
			}
			synctest.Wait()
			mcp.AddTool(server, mcp.Tool{Name: "late"}, func(context.Context, struct{}) (string, error) { return "", nil })
			for _, l := range all {
				l.want("notifications/tools/list_changed")
			}
			time.Sleep(time.Second)
			for _, l := range all {
				if len(l.events) != 0 {
					t.Errorf("%s: told of %v too", back, <-l.events)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if listens != 1 || g.Status()[0].Tools != 4 {
				t.Errorf("%s: %d subscriptions, want 1; status %+v", back, listens, g.Status()[0])
			}
		})
	}
}

// If the connection of one client fails, others are not affected, and not every call tries to open
// it again.
func TestAClientsConnectionFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{rev: mcp.V2025_11_25}
		f.open = func(ctx context.Context) error {
			if call := mcp.CallFrom(ctx); call != nil && call.Revision == mcp.V2026_07_28 {
				return errors.New("not for you")
			}
			return nil
		}
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open})
		bad, good := connect(t, g, mcp.V2026_07_28), connect(t, g, mcp.V2025_11_25)
		for range 3 {
			if got := which(t, bad); !strings.Contains(got, "not for you") {
				t.Errorf("call = %s", got)
			}
		}
		if got := which(t, good); got != "3" {
			t.Errorf("the other client reaches %s, want 3", got)
		}
		f.kill(3)
		time.Sleep(2 * time.Second)
		if got := which(t, good); !strings.Contains(got, "kept for you is gone: its connection was lost") {
			t.Errorf("the first call after a loss = %s", got)
		}
		if got := which(t, good); got != "4" {
			t.Errorf("after a loss it reaches %s, want 4", got)
		}
		if n := g.Status()[0].Restarts; n != 2 {
			t.Errorf("%d restarts, want 2: after a failure and after a loss", n)
		}
	})
}

// Calls in progress may finish when a server is removed; new ones go elsewhere.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{rev: mcp.V2026_07_28}
		f.more = func(n int, s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "work"}, func(ctx context.Context, _ struct{}) (string, error) {
				select {
				case <-time.After(5 * time.Second):
					return fmt.Sprint("done by ", n), nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			})
		}
		g := &gateway.Gateway{Name: "gw"}
		src := gateway.Source{Name: "db", Open: f.Open, Drain: time.Minute}
		stop := run(t, g, src)
		s := connect(t, g, mcp.V2026_07_28)
		var calls sync.WaitGroup
		calls.Go(func() {
			if res, err := s.CallTool(t.Context(), "db_work", nil); err != nil || res.Text() != "done by 1" {
				t.Errorf("call in progress = %v, %v", res, err)
			}
		})
		synctest.Wait()
		run(t, g, src)
		start := time.Now()
		stop()
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("the end took %v, want 5s", took)
		}
		calls.Wait()
		synctest.Wait()
		if got := which(t, s); got != "2" || f.alive() != "2" {
			t.Errorf("new calls reach %s, and %s run; want 2", got, f.alive())
		}
	})
}

// A Run whose context has ended replaces no upstream.
func TestRunThatHasEnded(t *testing.T) {
	g := &gateway.Gateway{}
	if err := g.Set("db", newsServer("x")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	open := func(context.Context) (gateway.Upstream, error) { return nil, errors.New("nobody is to be reached") }
	if err := g.Run(ctx, gateway.Source{Name: "db", Open: open}); err != nil {
		t.Fatal(err)
	}
	s := connect(t, g, mcp.V2026_07_28)
	if res, err := s.CallTool(t.Context(), "db_whoami", nil); err != nil || res.Text() != "x" {
		t.Errorf("who was there before = %v, %v", res, err)
	}
}

func TestRunNeedsAWholeSource(t *testing.T) {
	g := &gateway.Gateway{}
	if err := g.Run(t.Context(), gateway.Source{Name: "db"}); err == nil || !strings.Contains(err.Error(), `"db"`) {
		t.Errorf("Run without Open = %v", err)
	}
	if err := g.Run(t.Context(), gateway.Source{}); err == nil {
		t.Error("Run without a name succeeded")
	}
	if err := g.Set("", newsServer("x")); err == nil {
		t.Error("Set without a name succeeded")
	}
}

// T-06, T-11, T-15, T-31: a server learns a client's name and capabilities only if they hold for
// all users of the connection.
func TestRelay(t *testing.T) {
	for _, tt := range []struct {
		name  string
		share gateway.Share
		front mcp.Revision
		want  string
	}{
		{"a session's own", gateway.PerClient, mcp.V2025_06_18, "editor roots io.modelcontextprotocol/ui"},
		{"of a principal and what it can answer", gateway.PerClient, mcp.V2026_07_28, "editor roots io.modelcontextprotocol/ui"},
		{"for all", gateway.Shared, mcp.V2025_06_18, "gw elicitation roots sampling"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &farm{more: func(_ int, s *mcp.Server) {
					mcp.AddTool(s, mcp.Tool{Name: "caller"}, func(ctx context.Context, _ struct{}) (string, error) {
						call := mcp.CallFrom(ctx)
						said := call.Client.Name
						for _, name := range []string{"elicitation", "roots", "sampling"} {
							if call.Capabilities.Has(name) {
								said += " " + name
							}
						}
						if call.Capabilities.Has("extensions", "io.modelcontextprotocol/ui") {
							said += " io.modelcontextprotocol/ui"
						}
						return said + " " + string(call.Revision), nil
					})
				}}
				g := &gateway.Gateway{Name: "gw"}
				open := func(ctx context.Context) (gateway.Upstream, error) {
					if f.rev = ""; mcp.CallFrom(ctx) == nil {
						f.rev = mcp.V2025_11_25
					}
					return f.Open(ctx)
				}
				run(t, g, gateway.Source{Name: "db", Open: open, Share: tt.share})
				c := &mcp.Client{Name: "editor", Version: "2", Roots: func(context.Context) ([]mcp.Root, error) { return nil, nil },
					Extensions: map[string]json.RawMessage{"io.modelcontextprotocol/ui": json.RawMessage(`{}`)}}
				s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, c, tt.front)
				want := tt.want + " 2025-11-25" // as the main connection has learned (T-02)
				if got, err := mcp.CallAs[string](t.Context(), s, "db_caller", nil); err != nil || got != want {
					t.Errorf("the server is told %q, %v; want %q", got, err, want)
				}
			})
		})
	}
}

// Trap 14: a server that ends before it is ready counts as crashing too, and each start counts.
func TestCrashingBeforeTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gateway.Gateway{Name: "gw"}
		var starts atomic.Int64
		run(t, g, gateway.Source{Name: "db", Open: func(context.Context) (gateway.Upstream, error) {
			if starts.Add(1) == 1 {
				return nil, errors.New("not there yet")
			}
			return nil, &mcp.ExitError{Command: "db", State: "exit status 3"}
		}})
		for _, want := range []gateway.State{gateway.Failing, gateway.Failing, gateway.Failing, gateway.Crashing, gateway.Crashing} {
			synctest.Wait()
			st := g.Status()[0]
			if st.State != want || st.Restarts != int(starts.Load())-1 {
				t.Fatalf("after %d starts it is %s with %d restarts: %s; want %s", starts.Load(), st.State, st.Restarts, st.Reason, want)
			}
			for n := starts.Load(); starts.Load() == n; {
				time.Sleep(100 * time.Millisecond)
			}
		}
	})
}
