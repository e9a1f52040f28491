package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/mcp/level"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// watching starts a Watch and returns when nothing is missed any more.
func watching(t testing.TB, ctx context.Context, s *mcp.Session, uris ...string) <-chan mcp.Event {
	t.Helper()
	events := make(chan mcp.Event, 1000)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	wg.Go(func() {
		defer close(events)
		for e, err := range s.Watch(ctx, uris...) {
			if err != nil {
				if t.Context().Err() == nil { // the end of the test ends server and client in any order
					t.Errorf("watch: %v", err)
				}
				return
			}
			events <- e
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	if e := <-events; e.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("the first event is %+v", e)
	}
	return events
}

// expect reads events, in any order.
func expect(t testing.TB, events <-chan mcp.Event, want ...string) {
	t.Helper()
	var got []string
	for len(got) < len(want) {
		e, ok := <-events
		if !ok {
			t.Fatalf("got %q, want %q", got, want)
		}
		got = append(got, strings.TrimPrefix(e.Method, "notifications/")+" "+e.URI)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// without returns the next event that is not of a method.
func without(events <-chan mcp.Event, method string) <-chan mcp.Event {
	one := make(chan mcp.Event, 1)
	for e := range events {
		if e.Method != method {
			one <- e
			break
		}
	}
	close(one)
	return one
}

// Changes of lists and resources reach those who asked: of tools (TOOL-25-001, TOOL-26-008),
// prompts (PROM-26-004) and resources (RES-26-004), and of single resources those that were
// subscribed to (RES-25-001).
func TestWatchEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	var srv *mcp.Server
	newServer := func() *mcp.Server {
		srv = library()
		addTools(srv, 0, 2)
		return srv
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		srv := srv
		t.Parallel()
		events := watching(t, t.Context(), s, "lib:text", "lib:blob")
		// The GET stream of a legacy session opens when it likes, and what changes
		// before is not told; so the first change is repeated.
		first := time.NewTicker(50 * time.Millisecond)
		defer first.Stop()
		for told := false; !told; {
			addTools(srv, 2, 3)
			select {
			case e := <-events:
				if told = true; e.Method != "notifications/tools/list_changed" {
					t.Errorf("got %+v", e)
				}
			case <-first.C:
			}
		}
		mcp.AddPrompt(srv, mcp.Prompt{Name: "new"}, func(context.Context, struct{}) (string, error) { return "", nil })
		expect(t, without(events, "notifications/tools/list_changed"), "prompts/list_changed ")
		srv.Remove(mcp.Feature{Kind: mcp.KindResource, Name: "lib:json"}, mcp.Feature{Kind: mcp.KindTool, Name: "no such tool"})
		expect(t, events, "resources/list_changed ")
		mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{Name: "n", URITemplate: "n://{a}"}, func(context.Context, struct {
			A string `json:"a"`
		}) (string, error) {
			return "", nil
		})
		expect(t, events, "resources/list_changed ")
		srv.ResourceUpdated("lib:not-watched")
		srv.ResourceUpdated("lib:blob")
		expect(t, events, "resources/updated lib:blob")
		echoed, err := s.ReadResource(t.Context(), "lib:text")
		if err != nil || echoed.Contents[0].Text != "plain" {
			t.Errorf("read while watching = %v, %v", echoed, err)
		}
	})
}

// A burst of changes is one notification of each kind.
func TestBurst(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		synctest.Test(t, func(t *testing.T) {
			srv := library()
			addTools(srv, 0, 1)
			s := mcptest.Connect(t, srv, nothing(), rev)
			events := watching(t, t.Context(), s, "lib:text", "lib:blob")
			for range 100 {
				srv.ResourceUpdated("lib:blob")
				srv.ResourceUpdated("lib:text")
				srv.ResourceUpdated("lib:not-watched")
				addTools(srv, 0, 10)
			}
			expect(t, events, "tools/list_changed ", "resources/updated lib:blob", "resources/updated lib:text")
			time.Sleep(time.Second)
			select {
			case e := <-events:
				t.Errorf("and then %+v", e)
			default:
			}
		})
	}
}

// A Watch ends with its context without an error, and what was subscribed to with it.
func TestWatchEnds(t *testing.T) {
	mcptest.LeakCheck(t)
	var srv *mcp.Server
	mcptest.Every(t, func() *mcp.Server { srv = library(); return srv }, nothing, func(t *testing.T, s *mcp.Session) {
		srv := srv
		ctx, cancel := context.WithCancel(t.Context())
		events := watching(t, ctx, s, "lib:text")
		cancel()
		for e := range events {
			t.Errorf("after the end: %+v", e)
		}
		// The session is good for another one, and for a second beside it.
		a := watching(t, t.Context(), s, "lib:text")
		b := watching(t, t.Context(), s, "lib:blob", "lib:text")
		srv.ResourceUpdated("lib:text")
		for name, ch := range map[string]<-chan mcp.Event{"a": a, "b": b} {
			if e := <-ch; e.URI != "lib:text" {
				t.Errorf("%s got %+v", name, e)
			}
		}
	})
}

// The end of a subscription by the server is an error of Watch.
func TestWatchEndedByServer(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			srv := library()
			s := mcptest.Connect(t, srv, nothing(), rev)
			next, stop := iter.Pull2(s.Watch(t.Context(), "lib:text"))
			defer stop()
			if e, err, ok := next(); !ok || err != nil {
				t.Fatalf("event %+v, %v", e, err)
			}
			if err := srv.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown = %v", err)
			}
			for {
				_, err, ok := next()
				if !ok {
					t.Error("the watch ended without an error")
				}
				if err != nil {
					break
				}
			}
		})
	}
}

// A server without features can be watched: it may get some.
func TestWatchWithoutResources(t *testing.T) {
	s := mcptest.Connect(t, &mcp.Server{Name: "s"}, nothing(), mcp.V2026_07_28)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	for e, err := range s.Watch(ctx) {
		if err != nil || e.Method != "notifications/subscriptions/acknowledged" {
			t.Errorf("event %+v, %v", e, err)
		}
	}
}

// OnEvent is told what belongs to no call, in order.
func TestOnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := library()
		addTools(srv, 0, 1)
		events := make(chan mcp.Event, 10)
		c := nothing()
		c.OnEvent = func(s *mcp.Session, e mcp.Event) { events <- e }
		mcptest.Connect(t, srv, c, mcp.V2025_11_25)
		synctest.Wait()
		addTools(srv, 1, 3)
		if e := <-events; e.Method != "notifications/tools/list_changed" {
			t.Errorf("event %+v", e)
		}
	})
}

// PROG-26, LOG: progress and log messages come in order, before the answer, and
// progress only grows (PROG-26-003).
func TestProgressAndLogEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	newServer := func() *mcp.Server {
		return one(func(ctx context.Context, _ struct{}) (string, error) {
			for _, done := range []float64{1, 2, 2, 1, 0.5, 3} {
				mcp.Progress(ctx, done, 3, fmt.Sprintf("step %v", done))
			}
			log := mcp.Log(ctx)
			log.Debug("too little")
			log.Warn("careful", "n", 1, "logger", "mine")
			log.WithGroup("g").With("a", "b").Error("bad", "err", errors.New("why"), "ch", make(chan int))
			log.Log(ctx, level.Emergency, "help")
			return "done", nil
		})
	}
	newClient := func() *mcp.Client {
		c := nothing()
		c.LogLevel = level.Notice
		return c
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		var got []string
		res, err := s.CallTool(t.Context(), "ask", nil,
			mcp.OnProgress(func(done, total float64, message string) {
				got = append(got, fmt.Sprintf("%v/%v %s", done, total, message))
			}),
			mcp.OnLog(func(l mcp.LogMessage) { got = append(got, fmt.Sprintf("%v %s %.40s", l.Level, l.Logger, l.Data)) }))
		if err != nil || res.Text() != "done" {
			t.Fatalf("%v, %v", res, err)
		}
		want := []string{"1/3 step 1", "2/3 step 2", "3/3 step 3",
			`WARN mine {"n":1,"message":"careful"}`, `ERROR  {"g.a":"b","g.err":{},"g.ch":"0x`, `ERROR+12  "help"`}
		if s.Revision() < mcp.V2025_03_26 {
			for i := range 3 {
				want[i] = want[i][:4] // T-69
			}
		}
		if len(got) != len(want) {
			t.Fatalf("got %q", got)
		}
		for i := range want {
			if i == 4 || i == 3 { // the order of attributes is not promised
				continue
			}
			if got[i] != want[i] {
				t.Errorf("message %d is %q, want %q", i, got[i], want[i])
			}
		}
		if !strings.Contains(got[3], "careful") || !strings.HasPrefix(got[3], "WARN mine ") || !strings.HasPrefix(got[4], "ERROR  ") {
			t.Errorf("got %q", got)
		}
	})
}

// LOG-26: without a level a modern caller gets no log messages.
func TestNoLogUnasked(t *testing.T) {
	s := one(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Log(ctx).Error("unasked")
		mcp.Progress(ctx, 1, 1, "unasked")
		return "", nil
	})
	p := rawClient(t, s)
	p.send(modern(1, "tools/call", `{}`, `"name":"ask"`))
	p.answer(1)
	if len(p.notes) != 0 {
		t.Errorf("got %q", p.notes)
	}
}

// A second subscription to a resource is answered when the first is: the client may
// rely on either.
func TestSubscribeTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		gw := &mcp.Server{Name: "gw", Version: "1", Handler: mcp.HandlerFunc(func(ctx context.Context, r *mcp.Request) (mcp.Result, error) {
			if r.Method != "subscriptions/listen" {
				return mcp.RawResult(`{"capabilities":{"resources":{"subscribe":true}}}`), nil
			}
			if strings.Contains(string(r.Params), "test://x") {
				<-release
			}
			forward.Notify(ctx, "notifications/subscriptions/acknowledged", struct{}{})
			<-ctx.Done()
			return mcp.RawResult(`{}`), nil
		})}
		p := rawClient(t, gw)
		p.initialize(mcp.V2025_11_25, `{}`)
		p.sendf(subscribeX, 1)
		p.sendf(subscribeX, 2)
		p.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		p.answer(3) // fails the test if another answer comes before
		synctest.Wait()
		close(release)
		p.read()
		p.read()
	})
}
