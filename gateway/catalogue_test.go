package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// listing counts the tool lists that the servers of a farm return, and may change them.
type listing struct {
	count  atomic.Int64
	around func(ctx context.Context, next func() (mcp.Result, error)) (mcp.Result, error) // nil: nothing is
	mute   bool                                                                           // changes are not announced

	mu      sync.Mutex
	servers []*mcp.Server // guarded by mu
}

// last is the server that was started last.
func (l *listing) last() *mcp.Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.servers[len(l.servers)-1]
}

func (l *listing) farm(back mcp.Revision) *farm {
	return &farm{rev: back, more: func(_ int, s *mcp.Server) {
		l.mu.Lock()
		l.servers = append(l.servers, s)
		l.mu.Unlock()
		s.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				switch {
				case req.Method == "tools/list":
					l.count.Add(1)
					if l.around != nil {
						return l.around(ctx, func() (mcp.Result, error) { return next.Handle(ctx, req) })
					}
				case req.Method == "server/discover" && l.mute:
					res, err := next.Handle(ctx, req)
					if err != nil {
						return nil, err
					}
					return mcp.RawResult(strings.ReplaceAll(string(res.JSON()), `"listChanged":true`, `"listChanged":false`)), nil
				case req.Method == "subscriptions/listen" && l.mute:
					return nil, mcp.Errorf(jsonrpc.CodeInternal, "no subscriptions today")
				}
				return next.Handle(ctx, req)
			})
		})
	}}
}

// fetched returns the number of lists since the previous call.
func (l *listing) fetched() int64 { return l.count.Swap(0) }

// addTool adds a tool to a server and waits for the announcement.
func addTool(s *mcp.Server, name string) {
	mcp.AddTool(s, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return "", nil })
	time.Sleep(time.Second)
}

// named returns the names of the tools that a session is shown.
func named(t *testing.T, s *mcp.Session) string {
	t.Helper()
	var names []string
	for tool, err := range s.Tools(t.Context(), mcp.WithoutCache()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// F7: one fetch serves all callers while the server announces its changes and none comes. An
// announced change shows at once, another after half a minute.
func TestListsAreFetchedOnce(t *testing.T) {
	for _, back := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(back), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &listing{}
				g := &gateway.Gateway{Name: "gw"}
				run(t, g, gateway.Source{Name: "db", Share: gateway.Shared, Open: l.farm(back).Open})
				time.Sleep(time.Second)
				l.fetched()
				var callers []*mcp.Session
				for range 3 {
					callers = append(callers, connect(t, g, mcp.V2026_07_28), connect(t, g, mcp.V2025_06_18))
				}
				see := func(what string, want string, most int64) {
					t.Helper()
					for range 3 {
						for _, s := range callers {
							if got := named(t, s); got != want {
								t.Errorf("%s: tools %s, want %s", what, got, want)
							}
						}
					}
					if n := l.fetched(); n > most {
						t.Errorf("%s: fetched %d times, want at most %d", what, n, most)
					}
				}
				kinds := int64(1) // of callers that the server can tell apart
				if back == mcp.V2026_07_28 {
					kinds = 2
				}
				see("the first lists", "db_whoami db_ask db_which", kinds)
				addTool(l.last(), "more")
				see("after a change", "db_whoami db_ask db_which db_more", kinds+1) // one is the gateway's own
				time.Sleep(31 * time.Second)
				see("after half a minute", "db_whoami db_ask db_which db_more", kinds)
			})
		})
	}
}

// Concurrent callers share one answer.
func TestListsAtOnceAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listing{around: func(_ context.Context, next func() (mcp.Result, error)) (mcp.Result, error) {
			time.Sleep(100 * time.Millisecond)
			return next()
		}}
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: l.farm(mcp.V2026_07_28).Open})
		time.Sleep(time.Second)
		l.fetched()
		var all sync.WaitGroup
		for range 30 {
			s := connect(t, g, mcp.V2026_07_28)
			all.Go(func() {
				if n := tools(t, s); n != 3 {
					t.Errorf("%d tools, want 3", n)
				}
			})
		}
		all.Wait()
		if n := l.fetched(); n != 1 {
			t.Errorf("30 callers at once: fetched %d times, want once", n)
		}
	})
}

// A policy or a handler that panics or ends its goroutine breaks neither a list nor the program
// (trap 3).
func TestListsSurvivePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, p := range map[string]policy.Policy{
			"panic":  policy.Func(func(context.Context, *policy.Access) policy.Decision { panic("no") }),
			"goexit": policy.Func(func(context.Context, *policy.Access) policy.Decision { runtime.Goexit(); return policy.Decision{} }),
		} {
			g := &gateway.Gateway{Name: "gw", Middleware: func(server string) mcp.Middleware { return policy.Foreign(server, false, p, nil) }}
			stop := run(t, g, gateway.Source{Name: "db", Share: gateway.Shared, Open: (&farm{rev: mcp.V2026_07_28}).Open})
			if got := toolsOf(t, g, t.Context()); got != "" {
				t.Errorf("%s: tools %s of a policy that does not decide", name, got)
			}
			stop()
		}
		g := &gateway.Gateway{Name: "gw"}
		bad := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic("no") })
		for name, h := range map[string]mcp.Handler{"bad": bad, "good": newsServer("good")} {
			if err := g.Set(name, h); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := toolsOf(t, g, t.Context()), "good_whoami good_ask"; got != want {
			t.Errorf("beside a handler that panics: tools %s, want %s", got, want)
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		listens := startListening(ctx, t, connect(t, g, mcp.V2026_07_28), "good://front")
		listens.want("notifications/subscriptions/acknowledged")
		g.Remove("good")
		listens.want("notifications/tools/list_changed")
	})
}

// toolsOf lists the tools for the caller of ctx.
func toolsOf(t *testing.T, g *gateway.Gateway, ctx context.Context) string {
	t.Helper()
	res, err := g.Handle(ctx, &mcp.Request{Method: "tools/list"})
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(res.JSON(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// An answer that was in progress when the list changed is cached neither for lists nor for routing.
func TestAnOldListIsNotKept(t *testing.T) {
	for _, back := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctest.Test(t, func(t *testing.T) {
			hold := make(chan chan struct{}, 1)
			l := &listing{around: func(_ context.Context, next func() (mcp.Result, error)) (mcp.Result, error) {
				res, err := next()
				select {
				case c := <-hold:
					<-c
				default:
				}
				return res, err
			}}
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "db", Share: gateway.Shared, Open: l.farm(back).Open})
			time.Sleep(time.Second)
			s := connect(t, g, mcp.V2026_07_28)
			c := make(chan struct{})
			hold <- c
			old := make(chan string)
			go func() { old <- named(t, s) }()
			synctest.Wait() // the server has made the old list
			addTool(l.last(), "new")
			const want = "db_whoami db_ask db_which db_new"
			if got := named(t, s); got != want {
				t.Errorf("%s: tools %s while an older list is on its way, want %s", back, got, want)
			}
			close(c)
			<-old
			if got := named(t, s); got != want {
				t.Errorf("%s: tools %s after the older list has come, want %s", back, got, want)
			}
			if st := g.Status()[0]; st.Tools != 4 {
				t.Errorf("%s: status has %d tools, want 4", back, st.Tools)
			}
		})
	}
}

// If changes are not announced, lists of an older server are fetched again after 2 seconds, and
// those of a server of 2026-07-28 each time, unless it gives a ttlMs (CACHE-26-005).
func TestListsOfServersThatAnnounceNothing(t *testing.T) {
	for _, tt := range []struct {
		back mcp.Revision
		ttl  string
		kept time.Duration
	}{
		{mcp.V2025_03_26, "", 2 * time.Second},
		{mcp.V2026_07_28, "", 0},
		{mcp.V2026_07_28, `"ttlMs":5000,"cacheScope":"private"`, 0},
		{mcp.V2026_07_28, `"ttlMs":5000,"cacheScope":"public"`, 5 * time.Second},
	} {
		t.Run(fmt.Sprint(tt.back, tt.ttl), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &listing{mute: true}
				if tt.ttl != "" {
					l.around = func(_ context.Context, next func() (mcp.Result, error)) (mcp.Result, error) {
						res, err := next()
						if err != nil {
							return nil, err
						}
						return mcp.RawResult(strings.Replace(string(res.JSON()), "{", "{"+tt.ttl+",", 1)), nil
					}
				}
				g := &gateway.Gateway{Name: "gw"}
				run(t, g, gateway.Source{Name: "db", Share: gateway.Shared, Open: l.farm(tt.back).Open})
				time.Sleep(10 * time.Second)
				s := connect(t, g, mcp.V2025_11_25)
				addTool(l.last(), "quiet")
				time.Sleep(10 * time.Second)
				const want = "db_whoami db_ask db_which db_quiet"
				if got := named(t, s); got != want {
					t.Errorf("tools %s, want %s", got, want)
				}
				addTool(l.last(), "later") // takes a second
				wait := tt.kept > 0
				if got := named(t, s) == want; got != wait {
					t.Errorf("the list after a second is the old one: %v, want %v", got, wait)
				}
				time.Sleep(tt.kept)
				if got := named(t, s); got != want+" db_later" {
					t.Errorf("tools %s after %v, want %s db_later", got, tt.kept, want)
				}
			})
		})
	}
}

// A connection of a single client receives its changes without a subscription of the gateway.
func TestOwnConnectionsHearOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listing{}
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: l.farm(mcp.V2025_06_18).Open})
		a, b := connect(t, g, mcp.V2025_11_25), connect(t, g, mcp.V2025_11_25)
		for _, s := range []*mcp.Session{a, b} {
			if n := which(t, s); n == "1" {
				t.Fatalf("a session uses the connection for lists")
			}
		}
		const all = "db_whoami db_ask db_which"
		for range 2 {
			if x, y := named(t, a), named(t, b); x != all || y != all {
				t.Errorf("tools %s and %s, want %s", x, y, all)
			}
		}
		l.fetched()
		addTool(l.last(), "ofb")
		if x, y := named(t, a), named(t, b); x != all || y != all+" db_ofb" {
			t.Errorf("tools %s and %s after a change at the connection of the second", x, y)
		}
		if n := l.fetched(); n != 1 {
			t.Errorf("fetched %d times, want once", n)
		}
	})
}

// scopes is a policy that shows each tool to callers with a scope of its name, and extra to all.
type scopes struct{ extra atomic.Pointer[string] }

func (s *scopes) Version() any { return s.extra.Load() }

func (s *scopes) Decide(_ context.Context, a *policy.Access) policy.Decision {
	extra := s.extra.Load()
	return policy.Decision{Allow: a.Principal.HasScope(a.Name) || extra != nil && *extra == a.Name}
}

// unversioned is a policy that may decide differently each time.
type unversioned struct{ policy.Policy }

// A policy filters entries by the current caller and rules, even in a cached list, without asking
// the server.
func TestListsBehindAPolicy(t *testing.T) {
	for _, versioned := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			rules := &scopes{}
			var p policy.Policy = rules
			if !versioned {
				p = unversioned{rules}
			}
			l := &listing{}
			g := &gateway.Gateway{Name: "gw", Middleware: func(server string) mcp.Middleware { return policy.Foreign(server, false, p, nil) }}
			run(t, g, gateway.Source{Name: "db", Share: gateway.Shared, Open: l.farm(mcp.V2025_11_25).Open})
			time.Sleep(time.Second)
			l.fetched()
			callers := []struct {
				p    *auth.Principal
				want string
			}{
				{&auth.Principal{ID: "ada", Scopes: []string{"whoami", "which"}}, "db_whoami db_which"},
				{&auth.Principal{ID: "ada", Scopes: []string{"whoami"}}, "db_whoami"},
				{&auth.Principal{ID: "eve"}, ""},
				{nil, ""},
				{&auth.Principal{ID: "bob", Scopes: []string{"whoami", "which"}}, "db_whoami db_which"},
			}
			check := func(more string) {
				t.Helper()
				for round := range 2 {
					for i, c := range callers {
						if got := toolsOf(t, g, auth.With(t.Context(), c.p)); got != strings.TrimSpace(c.want+more) {
							t.Errorf("versioned %v, round %d, caller %d: tools %q, want %q", versioned, round, i, got, c.want+more)
						}
					}
				}
			}
			check("")
			if n, most := l.fetched(), int64(len(callers)); n > most {
				t.Errorf("fetched %d times, want at most %d: once for each credential", n, most)
			}
			name := "more"
			rules.extra.Store(&name)
			check("")
			addTool(l.last(), "more")
			check(" db_more")
			l.fetched()
			rules.extra.Store(nil)
			check("")
			rules.extra.Store(&name)
			check(" db_more")
			if n := l.fetched(); n != 0 {
				t.Errorf("fetched %d times for other rules, want none", n)
			}
		})
	}
}

// A URI that two servers have belongs to the first server, also in the kept lists.
func TestKeptListsKeepTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gateway.Gateway{Name: "gw"}
		for _, name := range []string{"b", "a"} {
			run(t, g, gateway.Source{Name: name, Open: (&farm{rev: mcp.V2026_07_28}).Open})
		}
		time.Sleep(time.Second)
		s := connect(t, g, mcp.V2026_07_28)
		for range 2 {
			n := 0
			for r, err := range s.Resources(t.Context(), mcp.WithoutCache()) {
				if err != nil {
					t.Fatal(err)
				}
				if r.URI == "shared://page" {
					n++
				}
			}
			if n != 1 {
				t.Errorf("shared://page is listed %d times", n)
			}
		}
		if st := g.Status(); len(st[0].Shadowed) > 0 || len(st[1].Shadowed) == 0 {
			t.Errorf("shadowed: %q and %q, want some of the second server", st[0].Shadowed, st[1].Shadowed)
		}
	})
}
