package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/metrics"
)

// keeper returns a farm of servers that keep a text for as long as they run.
func keeper(rev mcp.Revision) *farm {
	return &farm{rev: rev, more: func(_ int, s *mcp.Server) {
		var mu sync.Mutex
		kept := ""
		type text struct {
			Text string `json:"text"`
		}
		mcp.AddTool(s, mcp.Tool{Name: "set"}, func(_ context.Context, in text) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			kept = in.Text
			return "", nil
		})
		mcp.AddTool(s, mcp.Tool{Name: "get"}, func(context.Context, struct{}) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			return "kept " + kept, nil
		})
		mcp.AddTool(s, mcp.Tool{Name: "hang"}, func(ctx context.Context, _ struct{}) (string, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return "", ctx.Err()
		})
	}}
}

// set makes the server of a session keep a text. It returns the error text, or "".
func set(t *testing.T, s *mcp.Session, text string) string {
	t.Helper()
	return called(t, s, "db_set", map[string]any{"text": text})
}

func get(t *testing.T, s *mcp.Session) string { t.Helper(); return called(t, s, "db_get", nil) }

func called(t *testing.T, s *mcp.Session, tool string, args any) string {
	t.Helper()
	res, err := s.CallTool(t.Context(), tool, args)
	if err != nil {
		return err.Error()
	}
	return res.Text()
}

// read reads a resource, which leaves no state at the server.
func read(t *testing.T, s *mcp.Session) string {
	t.Helper()
	res, err := s.ReadResource(t.Context(), "news://front")
	if err != nil {
		return err.Error()
	}
	return res.Contents[0].Text
}

// Trap 8, F3: none of 130 sessions at an older server loses its state silently.
func TestStateIsNeverLostInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := keeper(mcp.V2025_11_25)
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open})
		var all [130]*mcp.Session
		var texts, said [130]string
		for i := range all {
			all[i], texts[i] = connect(t, g, mcp.V2025_11_25), fmt.Sprint("text ", i)
		}
		for i, s := range all {
			said[i] = set(t, s, texts[i])
		}
		refused := 0
		for i, s := range all {
			got := get(t, s)
			switch {
			case said[i] == "" && got == "kept "+texts[i]:
			case strings.Contains(said[i], "used by 100 clients") && strings.Contains(got, "used by 100 clients"):
				refused++
			default:
				t.Errorf("session %d: set = %q, get = %q", i, said[i], got)
			}
		}
		if refused != 30 {
			t.Errorf("%d sessions were refused, want 30", refused)
		}
		if st := g.Status()[0]; st.Clients != 100 || st.Losses != 0 || st.Evicted != 0 || st.Refused != 60 {
			t.Errorf("status = %+v", st)
		}
		all[7].Close()
		synctest.Wait()
		if got := set(t, all[120], "late"); got != "" {
			t.Errorf("when there is a place: %s", got)
		}
	})
}

// F3: a connection that was used only for reads makes room, the quietest first; one in use does
// not.
func TestReadsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := keeper(mcp.V2025_11_25)
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open, MaxClients: 3, Queue: -1})
		var s [6]*mcp.Session
		for i := range s {
			s[i] = connect(t, g, mcp.V2025_11_25)
		}
		for i := range 3 {
			if got := read(t, s[i]); !strings.Contains(got, "news") {
				t.Fatal(got)
			}
			time.Sleep(time.Second)
		}
		if got := set(t, s[0], "a"); got != "" { // so that 1 is the quietest of reads
			t.Fatal(got)
		}
		read(t, s[3])
		synctest.Wait()
		if got := f.alive(); got != "1 2 4 5" { // 1 is for lists
			t.Errorf("servers %s run, want the quietest gone", got)
		}
		if got := read(t, s[1]); !strings.Contains(got, "news") { // it lost nothing
			t.Errorf("after it has made room: %s", got)
		}
		if got := get(t, s[0]); got != "kept a" {
			t.Errorf("state that was left: %s", got)
		}
		set(t, s[1], "b")
		set(t, s[3], "c")
		if got := read(t, s[4]); !strings.Contains(got, "used by 3 clients") {
			t.Errorf("without a place: %s", got)
		}
		if st := g.Status()[0]; st.Losses != 0 || st.Evicted != 2 || st.Refused != 1 {
			t.Errorf("status = %+v", st)
		}
	})
}

// F4: a call waits for a place, by default for 2 seconds.
func TestCallsWaitForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := keeper(mcp.V2025_11_25)
		var waits, lasted []time.Duration
		var mu sync.Mutex // of lasted
		g := &gateway.Gateway{Name: "gw", OnWait: func(_ string, d time.Duration) { waits = append(waits, d) }, OnClose: func(_ string, d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			lasted = append(lasted, d)
		}}
		stop := run(t, g, gateway.Source{Name: "db", Open: f.Open, MaxClients: 1})
		one, two := connect(t, g, mcp.V2025_11_25), connect(t, g, mcp.V2026_07_28)
		set(t, one, "a")
		start := time.Now()
		if got := set(t, two, "b"); !strings.Contains(got, "used by 1 clients") || time.Since(start) != 2*time.Second {
			t.Errorf("after %v: %s", time.Since(start), got)
		}
		start = time.Now()
		time.AfterFunc(1500*time.Millisecond, func() { one.Close() })
		if got := set(t, two, "b"); got != "" || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("after %v: %s", time.Since(start), got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if _, err := connect(t, g, mcp.V2025_11_25).CallTool(ctx, "db_set", nil); err == nil || time.Since(start) != time.Second {
			t.Errorf("a caller who leaves waits for %v: %v", time.Since(start), err)
		}
		synctest.Wait()
		if want := []time.Duration{2 * time.Second, 1500 * time.Millisecond, time.Second}; !slices.Equal(waits, want) {
			t.Errorf("OnWait got %v, want %v", waits, want)
		}
		stop()
		slices.Sort(lasted)
		if want := []time.Duration{time.Second, 3500 * time.Millisecond, 4500 * time.Millisecond}; !slices.Equal(lasted, want) {
			t.Errorf("OnClose got %v, want %v: the second client's, the first one's, that of lists", lasted, want)
		}
	})
}

// Trap 8: a known principal has at most a quarter of the places, and gets another one only at its
// own cost.
func TestOnePrincipalDoesNotTakeAllPlaces(t *testing.T) {
	f := keeper(mcp.V2025_11_25)
	g := &gateway.Gateway{Name: "gw"}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx, gateway.Source{Name: "db", Open: f.Open, MaxClients: 8, Queue: -1})
	}()
	t.Cleanup(func() { cancel(); <-done })
	connect := users(t, g)
	bob := connect("bob", mcp.V2025_11_25)
	read(t, bob)
	eve := []*mcp.Session{connect("eve", mcp.V2025_11_25), connect("eve", mcp.V2025_11_25), connect("eve", mcp.V2025_11_25)}
	if a, b := set(t, eve[0], "a"), read(t, eve[1]); a != "" || !strings.Contains(b, "news") {
		t.Fatal(a, b)
	}
	if got := set(t, eve[2], "c"); got != "" {
		t.Errorf("a third session, of which one has only read: %s", got)
	}
	if got := read(t, eve[1]); !strings.Contains(got, "one caller may have at most a quarter of the 8") {
		t.Errorf("one too many: %s", got)
	}
	if a, c := get(t, eve[0]), get(t, eve[2]); a != "kept a" || c != "kept c" {
		t.Errorf("the state of the others: %q, %q", a, c)
	}
	for range 6 { // callers without a principal share the rest
		if got := set(t, connect("", mcp.V2025_11_25), "x"); got != "" {
			t.Errorf("a caller who is not known: %s", got)
		}
	}
	if st := g.Status()[0]; st.Clients != 8 || st.Evicted != 2 { // of eve, and in the end that of bob
		t.Errorf("status = %+v", st)
	}
	if got := read(t, bob); !strings.Contains(got, "used by 8 clients") {
		t.Errorf("without a place: %s", got)
	}
}

// F3: however the state of a client is lost, its next request fails once, with an explanation, and
// does not reach a server without the state.
func TestLossIsTold(t *testing.T) {
	const gone = "kept for you is gone"
	for _, tt := range []struct {
		name  string
		share gateway.Share
		front mcp.Revision
		idle  time.Duration
		lose  func(t *testing.T, f *farm, again func())
		want  string
	}{
		{"the server of a single client ends", gateway.Shared, mcp.V2025_06_18, 0, func(t *testing.T, f *farm, _ func()) { f.kill(1) }, "its connection was lost"},
		{"the server of a single client ends, without a session", gateway.Shared, mcp.V2026_07_28, 0, func(t *testing.T, f *farm, _ func()) { f.kill(1) }, "its connection was lost"},
		{"that of a single client is unused", gateway.Shared, mcp.V2025_06_18, time.Minute, func(*testing.T, *farm, func()) { time.Sleep(2 * time.Minute) }, "unused for 1m0s"},
		{"the configuration for a single client changes", gateway.Shared, mcp.V2025_06_18, 0, func(_ *testing.T, _ *farm, again func()) { again() }, "its configuration, or its sources, changed"},
		{"the server ends", gateway.PerSession, mcp.V2025_06_18, 0, func(t *testing.T, f *farm, _ func()) { f.kill(2) }, "its connection was lost"},
		{"the server of a principal ends", gateway.PerPrincipal, mcp.V2025_06_18, 0, func(t *testing.T, f *farm, _ func()) { f.kill(2) }, "its connection was lost"},
		{"without a session", gateway.PerSession, mcp.V2026_07_28, 0, func(t *testing.T, f *farm, _ func()) { f.kill(2) }, "its connection was lost"},
		{"unused", gateway.PerSession, mcp.V2025_06_18, time.Minute, func(*testing.T, *farm, func()) { time.Sleep(2 * time.Minute) }, "unused for 1m0s"},
		{"unused, of a principal", gateway.PerPrincipal, mcp.V2025_06_18, time.Minute, func(*testing.T, *farm, func()) { time.Sleep(2 * time.Minute) }, "unused for 1m0s"},
		{"unused, without a session", gateway.PerSession, mcp.V2026_07_28, 0, func(*testing.T, *farm, func()) { time.Sleep(time.Hour) }, ""},
		{"its configuration changes", gateway.PerSession, mcp.V2025_06_18, 0, func(_ *testing.T, _ *farm, again func()) { again() }, "its configuration, or its sources, changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := keeper(mcp.V2025_11_25)
				g := &gateway.Gateway{Name: "gw"}
				c := &metrics.Counters{Listed: g.Lists}
				g.Middleware = c.Around(nil)
				src := gateway.Source{Name: "db", Open: f.Open, Share: tt.share, Alone: tt.share == gateway.Shared, Idle: tt.idle}
				stop := run(t, g, src)
				s, reader := connect(t, g, tt.front), connect(t, g, mcp.V2025_11_25)
				if got := set(t, s, "a"); got != "" {
					t.Fatal(got)
				}
				read(t, reader)
				tt.lose(t, f, func() { run(t, g, src); stop() })
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if n := tools(t, s); n == 0 {
					t.Error("a list fails")
				}
				got := get(t, s)
				if tt.want == "" {
					if got != "kept " {
						t.Errorf("the next call = %s", got)
					}
					return
				}
				if !strings.Contains(got, gone) || !strings.Contains(got, tt.want) {
					t.Errorf("the next call = %s; want it to say %q and why: %q", got, gone, tt.want)
				}
				if db := c.Read(metrics.Total).Servers[0]; db.Errors != (metrics.Errors{Transport: 1}) || db.Upstream.Errors != (metrics.Errors{}) || db.Upstream.Calls != db.Calls-1 {
					t.Errorf("counted as %+v", db)
				}
				if got := get(t, s); got != "kept " {
					t.Errorf("the call after that = %s", got)
				}
				told := tt.share == gateway.PerPrincipal && tt.idle == 0 // see TestLossOfOtherWindows
				if got := get(t, reader); got != "kept " && !told {
					t.Errorf("a client that has only read is told: %s", got)
				}
			})
		})
	}
}

// F3: if windows of one person share a process, each that has used it is told once, and so is one
// that has not, because it may rely on state that another window left there.
func TestLossOfOtherWindows(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} { // of the new window
		synctest.Test(t, func(t *testing.T) {
			f := keeper(mcp.V2025_11_25)
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.PerPrincipal})
			first, second, closed := connect(t, g, mcp.V2025_11_25), connect(t, g, mcp.V2025_06_18), connect(t, g, mcp.V2025_11_25)
			set(t, first, "a")
			get(t, second)
			get(t, closed)
			closed.Close()
			f.kill(2)
			synctest.Wait()
			told := func(what string, s *mcp.Session, want bool) {
				t.Helper()
				if got := get(t, s); strings.Contains(got, "kept for you is gone") != want || !want && got != "kept " {
					t.Errorf("%s: %s; want it told: %t", what, got, want)
				}
			}
			told("a window that has used the process", first, true)
			told("the same again", first, false)
			told("a new window", connect(t, g, rev), true)
			told("another new window", connect(t, g, rev), false)
			told("another window that has used the process", second, true)
			told("the same again", second, false)
			time.Sleep(time.Hour)
			f.kill(3)
			synctest.Wait()
			time.Sleep(time.Hour)
			// Callers without a session are one client, which has used the process.
			told("a new window an hour later", connect(t, g, rev), rev == mcp.V2026_07_28)
		})
	}
}

// F3: all calls that a client sends before it learns of its loss fail, not only the first.
func TestLossIsToldToCallsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		share gateway.Share
		front mcp.Revision
	}{{gateway.PerSession, mcp.V2025_11_25}, {gateway.PerPrincipal, mcp.V2025_11_25}, {gateway.PerSession, mcp.V2026_07_28}} {
		for _, before := range []bool{true, false} { // one of the calls is in progress when the server ends
			synctest.Test(t, func(t *testing.T) {
				f := keeper(mcp.V2025_11_25)
				g := &gateway.Gateway{Name: "gw"}
				run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: tt.share})
				s := connect(t, g, tt.front)
				set(t, s, "a")
				var calls sync.WaitGroup
				call := func(tool string) {
					calls.Go(func() {
						if got := called(t, s, tool, nil); !strings.Contains(got, "kept for you is gone") {
							t.Errorf("%v, %s, before %t: %s", tt.share, tt.front, before, got)
						}
					})
				}
				if before {
					call("db_hang")
					synctest.Wait()
				}
				f.kill(2)
				synctest.Wait()
				for i := range 3 {
					time.Sleep(time.Duration(i) * 10 * time.Millisecond)
					call("db_get")
				}
				calls.Wait()
				if got := get(t, s); got != "kept " {
					t.Errorf("%v, %s, before %t: the next call: %s", tt.share, tt.front, before, got)
				}
				time.Sleep(time.Minute) // the call hangs as long
			})
		}
	}
}

// If a connection breaks during a call, the error of the call itself reports the loss; other
// sessions of the principal learn of it with their next call.
func TestLossInTheMiddleOfACall(t *testing.T) {
	for _, share := range []gateway.Share{gateway.PerSession, gateway.PerPrincipal} {
		synctest.Test(t, func(t *testing.T) {
			f := keeper(mcp.V2025_11_25)
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: share})
			s, other := connect(t, g, mcp.V2025_11_25), connect(t, g, mcp.V2025_11_25)
			set(t, s, "a")
			set(t, other, "b")
			var calls sync.WaitGroup
			calls.Go(func() {
				if got := called(t, s, "db_hang", nil); !strings.Contains(got, "kept for you is gone") || !strings.Contains(got, "may or may not have run") {
					t.Errorf("%v: the call = %s", share, got)
				}
			})
			synctest.Wait()
			f.kill(2)
			calls.Wait()
			if got := get(t, s); got != "kept " {
				t.Errorf("%v: the next call = %s", share, got)
			}
			got := get(t, other)
			if lost := strings.Contains(got, "kept for you is gone"); lost != (share == gateway.PerPrincipal) {
				t.Errorf("%v: the next call of the other session = %s", share, got)
			}
			time.Sleep(time.Minute) // the call hangs as long
		})
	}
}

// F8: one connection, and one process, serves all sessions of a principal with the same
// capabilities.
func TestPrincipalsShare(t *testing.T) {
	f := keeper(mcp.V2025_11_25)
	g := &gateway.Gateway{Name: "gw"}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx, gateway.Source{Name: "db", Open: f.Open, Older: gateway.PerPrincipal})
	}()
	t.Cleanup(func() { cancel(); <-done })
	connect := users(t, g)
	for _, user := range []string{"ada", "eve", ""} {
		first := connect(user, mcp.V2025_11_25)
		if got := set(t, first, "of "+user); got != "" {
			t.Fatal(got)
		}
		for range 3 {
			for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
				if got := get(t, connect(user, rev)); got != "kept of "+user {
					t.Errorf("another window of %q on %s: %s", user, rev, got)
				}
			}
		}
		first.Close()
	}
	if st := g.Status()[0]; st.Conns != 4 || st.Share != gateway.PerPrincipal || st.Roots {
		t.Errorf("status = %+v, want a connection for lists and one for each of three", st)
	}
}

// F8: connections of one principal differ by the capabilities of the client.
func TestPrincipalsShareByCapabilities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := keeper(mcp.V2025_11_25)
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.PerPrincipal})
		srv := &mcp.Server{Name: "gw", Version: "1", Handler: g}
		open := func(asks bool) *mcp.Session {
			c := &mcp.Client{Name: "c", Version: "1"}
			if asks {
				c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"color": "red"}}, nil
				}
			}
			return mcptest.Connect(t, srv, c, mcp.V2025_11_25)
		}
		set(t, open(true), "a")
		if got := get(t, open(true)); got != "kept a" {
			t.Errorf("who can be asked the same: %s", got)
		}
		if got := get(t, open(false)); got != "kept " {
			t.Errorf("who can be asked less: %s", got)
		}
		if got := called(t, open(true), "db_ask", nil); got != "news red" { // it reaches a session
			t.Errorf("a tool that asks: %s", got)
		}
	})
}

// F8: a server that asks for roots runs per session from then on, for sessions with roots, even
// after a restart. The session that opened a connection keeps it; others are told.
func TestRootsArePerSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := keeper(mcp.V2025_11_25)
		base := f.more
		f.more = func(n int, s *mcp.Server) {
			base(n, s)
			mcp.AddTool(s, mcp.Tool{Name: "where"}, func(ctx context.Context, _ struct{}) (string, error) {
				roots, err := mcp.Roots(ctx)
				if err != nil || len(roots) == 0 {
					return "", fmt.Errorf("roots %v, %v", roots, err)
				}
				return roots[0].URI, nil
			})
		}
		g := &gateway.Gateway{Name: "gw"}
		src := gateway.Source{Name: "db", Open: f.Open, Share: gateway.PerPrincipal}
		stop := run(t, g, src)
		srv := &mcp.Server{Name: "gw", Version: "1", Handler: g}
		open := func(root string) *mcp.Session {
			return mcptest.Connect(t, srv, &mcp.Client{Name: "c", Version: "1", Roots: func(context.Context) ([]mcp.Root, error) {
				return []mcp.Root{{URI: root}}, nil
			}}, mcp.V2025_11_25)
		}
		a, b, c := open("file:///a"), open("file:///b"), open("file:///c")
		set(t, a, "a")
		set(t, b, "b")
		read(t, c)
		if got := f.alive(); got != "1 2" {
			t.Fatalf("servers %s run, want one for lists and one for the principal", got)
		}
		if got := called(t, b, "db_where", nil); got != "file:///b" { // of the session whose call it is
			t.Errorf("roots in a call of b = %s", got)
		}
		if got := get(t, a); got != "kept b" { // it was the first to use it
			t.Errorf("the session that has opened the connection: %s", got)
		}
		if got := get(t, b); !strings.Contains(got, "kept for you is gone: it asks for roots") {
			t.Errorf("another session: %s", got)
		}
		for s, root := range map[*mcp.Session]string{a: "file:///a", b: "file:///b", c: "file:///c"} {
			if got := called(t, s, "db_where", nil); got != root {
				t.Errorf("roots = %s, want %s", got, root)
			}
		}
		if got := f.alive(); got != "1 2 3 4" {
			t.Errorf("servers %s run, want one for each session", got)
		}
		a.Close()
		synctest.Wait()
		if got := f.alive(); got != "1 3 4" {
			t.Errorf("servers %s run after the end of a session", got)
		}
		for range 2 { // a session without roots cannot be asked for them
			which(t, connect(t, g, mcp.V2025_11_25))
		}
		if got := f.alive(); got != "1 3 4 5" {
			t.Errorf("servers %s run, want one for sessions without roots", got)
		}
		if st := g.Status()[0]; st.Share != gateway.PerPrincipal || !st.Roots {
			t.Errorf("status = %+v", st)
		}
		stop()
		run(t, g, src)
		if st := g.Status()[0]; !st.Roots {
			t.Errorf("status when it was started anew = %+v", st)
		}
	})
}
