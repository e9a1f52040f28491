package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// listens records the subscriptions at the servers of a farm.
type listens struct {
	mu     sync.Mutex
	server *mcp.Server             // the last
	all    []string                // the resources of each subscription so far
	open   []string                // the resources of each open one
	refuse string                  // a resource that is refused
	end    context.CancelCauseFunc // of the last subscription
}

// farm returns a farm whose servers record their subscriptions.
func (l *listens) farm(back mcp.Revision) *farm {
	return &farm{rev: back, more: func(_ int, s *mcp.Server) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.server = s
		s.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method != "subscriptions/listen" {
					return next.Handle(ctx, req)
				}
				var w struct {
					Notifications struct {
						ResourceSubscriptions []string `json:"resourceSubscriptions"`
					} `json:"notifications"`
				}
				if err := json.Unmarshal(req.Params, &w); err != nil {
					return nil, err
				}
				uris := strings.Join(w.Notifications.ResourceSubscriptions, " ")
				l.mu.Lock()
				if l.refuse != "" && strings.Contains(uris, l.refuse) {
					l.mu.Unlock()
					return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "no subscription to %s", l.refuse)
				}
				l.all, l.open = append(l.all, uris), append(l.open, uris)
				ctx, l.end = context.WithCancelCause(ctx)
				l.mu.Unlock()
				defer func() {
					l.mu.Lock()
					defer l.mu.Unlock()
					i := slices.Index(l.open, uris)
					l.open = slices.Delete(l.open, i, i+1)
				}()
				return next.Handle(ctx, req)
			})
		})
	}}
}

// want waits a while and compares the open subscriptions.
func (l *listens) want(t *testing.T, open string, all int) {
	t.Helper()
	time.Sleep(5 * time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	if fmt.Sprintf("%q", l.open) != open || all >= 0 && len(l.all) != all {
		t.Errorf("subscriptions %q, after %d of them %q; want %s after %d", l.open, len(l.all), l.all, open, all)
	}
}

// T-50, T-51: however many callers of all revisions follow however many resources over a shared
// connection, the server has one subscription, which grows and shrinks as needed.
func TestOneSubscriptionForResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listens{}
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: l.farm(mcp.V2026_07_28).Open})
		l.want(t, `[""]`, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all []*listening
		for range 4 {
			for _, rev := range mcp.Revisions() {
				one := startListening(ctx, t, connect(t, g, rev), "news://front")
				one.want("notifications/subscriptions/acknowledged")
				all = append(all, one)
			}
		}
		l.want(t, `["news://front"]`, 2)
		short, leave := context.WithCancel(ctx)
		other := startListening(short, t, connect(t, g, mcp.V2026_07_28), "news://item/7", "news://front")
		other.want("notifications/subscriptions/acknowledged")
		l.want(t, `["news://front news://item/7"]`, 3)

		l.server.ResourceUpdated("news://front")
		for _, one := range append(all, other) {
			one.want("notifications/resources/updated")
		}
		l.server.ResourceUpdated("news://item/7")
		other.want("notifications/resources/updated")
		mcp.AddTool(l.server, mcp.Tool{Name: "late"}, func(context.Context, struct{}) (string, error) { return "", nil })
		for _, one := range append(all, other) {
			one.want("notifications/tools/list_changed")
		}
		time.Sleep(time.Second)
		for _, one := range append(all, other) {
			if len(one.events) > 0 {
				t.Errorf("told of %v too", <-one.events)
			}
		}
		leave()
		l.want(t, `["news://front"]`, 4)
		cancel()
		l.want(t, `[""]`, 5)
	})
}

// SUB-26-003: a change of a server that listens already is reported after the acknowledgement, which waits for the others.
func TestChangeWhileAnotherServerBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := func(uri string, begins time.Duration) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				switch req.Method {
				case "resources/list":
					return mcp.RawResult(fmt.Sprintf(`{"resources":[{"uri":%q,"name":"page"}]}`, uri)), nil
				case "subscriptions/listen":
					time.Sleep(begins)
					if err := forward.Notify(ctx, "notifications/subscriptions/acknowledged", map[string]any{"notifications": req.Param("notifications")}); err != nil {
						return nil, err
					}
					if err := forward.Notify(ctx, "notifications/resources/updated", map[string]string{"uri": uri}); err != nil {
						return nil, err
					}
					<-ctx.Done()
					return mcp.RawResult(`{}`), nil
				}
				return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "no method %q", req.Method)
			})
		}
		g := newGateway(t, map[string]mcp.Handler{"soon": source("soon://x", 0), "later": source("later://x", time.Second)}, "soon", "later")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l := startListening(ctx, t, connect(t, g, mcp.V2026_07_28), "soon://x", "later://x")
		l.want("notifications/subscriptions/acknowledged")
		l.want("notifications/resources/updated")
		l.want("notifications/resources/updated")
	})
}

// No event is missed while one subscription replaces another: a listener hears of each change, even
// while others come and go.
func TestNothingIsMissedMeanwhile(t *testing.T) {
	for _, back := range []mcp.Revision{mcp.V2025_06_18, mcp.V2026_07_28} {
		synctest.Test(t, func(t *testing.T) {
			l := &listens{}
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "db", Open: l.farm(back).Open, Share: gateway.Shared})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			one := startListening(ctx, t, connect(t, g, mcp.V2026_07_28), "news://front")
			one.want("notifications/subscriptions/acknowledged")
			var coming sync.WaitGroup
			coming.Go(func() {
				for i := range 40 {
					own, leave := context.WithCancel(ctx)
					s := startListening(own, t, connect(t, g, mcp.V2026_07_28), fmt.Sprintf("news://item/%d", i))
					s.want("notifications/subscriptions/acknowledged")
					leave()
				}
			})
			for i := range 200 {
				time.Sleep(time.Duration(i%7) * 10 * time.Millisecond)
				for len(one.events) > 0 {
					<-one.events
				}
				l.server.ResourceUpdated("news://front")
				select {
				case <-one.events:
				case <-time.After(10 * time.Second):
					t.Fatalf("%s: change %d was not told", back, i)
				}
			}
			coming.Wait()
		})
	}
}

// A caller that asks for a resource that the server refuses fails alone, even if others come at the
// same moment.
func TestARefusedSubscriptionIsNoOthers(t *testing.T) {
	for _, back := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctest.Test(t, func(t *testing.T) {
			l := &listens{refuse: "news://item/13"}
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "db", Open: l.farm(back).Open, Share: gateway.Shared})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			before := startListening(ctx, t, connect(t, g, mcp.V2026_07_28), "news://front")
			before.want("notifications/subscriptions/acknowledged")
			sessions := map[string]*mcp.Session{}
			for _, item := range []string{"12", "13", "14"} {
				sessions[item] = connect(t, g, mcp.V2026_07_28)
			}
			var at sync.WaitGroup
			var mu sync.Mutex
			good := map[string]*listening{}
			for item, s := range sessions {
				at.Go(func() {
					one := startListening(ctx, t, s, "news://item/"+item)
					one.want("notifications/subscriptions/acknowledged")
					mu.Lock()
					defer mu.Unlock()
					good[item] = one
				})
			}
			at.Wait()
			time.Sleep(5 * time.Second)
			l.server.ResourceUpdated("news://front")
			before.want("notifications/resources/updated")
			for _, item := range []string{"12", "14"} {
				l.server.ResourceUpdated("news://item/" + item)
				good[item].want("notifications/resources/updated")
			}
		})
	}
}

// T-55, T-56: a subscription that ends is opened again, and everything that it covered is reported
// as changed; the same holds for a new connection.
func TestTheSubscriptionComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listens{}
		f := l.farm(mcp.V2026_07_28)
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		one := startListening(ctx, t, connect(t, g, mcp.V2026_07_28), "news://front")
		one.want("notifications/subscriptions/acknowledged")
		changed := func(why string) {
			t.Helper()
			time.Sleep(time.Minute)
			seen := map[string]bool{}
			for len(one.events) > 0 {
				seen[(<-one.events).Method] = true
			}
			for _, method := range []string{"notifications/resources/updated", "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"} {
				if !seen[method] {
					t.Errorf("after %s: told %v, want %s", why, seen, method)
				}
			}
			l.server.ResourceUpdated("news://front")
			one.want("notifications/resources/updated")
		}
		changed2 := func() { l.mu.Lock(); defer l.mu.Unlock(); l.end(errors.New("enough")) }
		changed2()
		changed("the end of the subscription")
		f.kill(1)
		changed("the end of the connection")
		l.want(t, `["news://front"]`, -1)
	})
}

// seenBy is a connection to a server in this process that shows each caller its own lists, but
// sends the same events to all.
type seenBy struct {
	inProcess
	news *mcp.Session
}

func (s seenBy) Watch(ctx context.Context, uris ...string) iter.Seq2[mcp.Event, error] {
	return s.news.Watch(ctx, uris...)
}

// A caller receives no events of a resource that it may not see, even over a shared subscription.
func TestSharedSubscriptionsAreOfPrincipals(t *testing.T) {
	srv := newsServer("news")
	mcp.AddResource(srv, mcp.Resource{URI: "secret://page", Name: "secret"}, func(context.Context) (string, error) { return "told", nil })
	srv.Visible = func(ctx context.Context, f mcp.Feature) bool {
		call := mcp.CallFrom(ctx)
		return !strings.Contains(f.Name, "secret") || call != nil && call.Principal == "ada"
	}
	ready := make(chan struct{}, 10)
	g := &gateway.Gateway{Name: "gw", OnStatus: func(s gateway.Status) {
		if s.State == gateway.Ready {
			ready <- struct{}{}
		}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	news := mcptest.Connect(t, srv, &mcp.Client{Name: "gw"}, mcp.V2026_07_28)
	go func() {
		defer close(done)
		g.Run(ctx, gateway.Source{Name: "news", Share: gateway.Shared, Open: func(context.Context) (gateway.Upstream, error) {
			return seenBy{inProcess{srv}, news}, nil
		}})
	}()
	t.Cleanup(func() { cancel(); <-done })
	<-ready
	connect := users(t, g)
	listenCtx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	for _, rev := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_06_18} {
		ada := startListening(listenCtx, t, connect("ada", rev), "secret://page", "news://front")
		eve := startListening(listenCtx, t, connect("eve", rev), "secret://page", "news://front")
		ada.want("notifications/subscriptions/acknowledged")
		eve.want("notifications/subscriptions/acknowledged")
		srv.ResourceUpdated("secret://page")
		ada.wantURI("secret://page")
		srv.ResourceUpdated("news://front")
		eve.wantURI("news://front") // and not the other, which came before
		ada.wantURI("news://front")
	}
}

func (l *listening) wantURI(uri string) {
	l.t.Helper()
	if e, ok := <-l.events; !ok || e.URI != uri {
		l.t.Fatalf("event %+v, want an update of %s", e, uri)
	}
}

// T-57: a listener of a folder hears of the files in it, or only of the folder if there are too
// many files to remember.
func TestPartsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listens{}
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: (&parts{listens: l}).Open})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		one := startListening(ctx, t, connect(t, g, mcp.V2026_07_28), "news://item/7")
		one.want("notifications/subscriptions/acknowledged")
		var uris []string
		for range 3 { // in any order, as the gateway sends them while more come
			e := <-one.events
			uris = append(uris, e.URI)
		}
		if slices.Sort(uris); !slices.Equal(uris, []string{"news://item/7", "news://item/7#x", "news://item/7/page/1"}) {
			t.Errorf("told of %q", uris)
		}
		time.Sleep(time.Minute)
		if len(one.events) > 0 {
			t.Errorf("told of %v too", <-one.events)
		}
	})
}

// parts opens connections that report changes of parts of a resource when any is listened to.
type parts struct{ *listens }

func (p *parts) Open(ctx context.Context) (gateway.Upstream, error) {
	up, err := p.farm(mcp.V2026_07_28).Open(ctx)
	if err != nil {
		return nil, err
	}
	return partsOf{up.(*mcp.Session)}, nil
}

type partsOf struct{ *mcp.Session }

func (p partsOf) Watch(ctx context.Context, uris ...string) iter.Seq2[mcp.Event, error] {
	return func(yield func(mcp.Event, error) bool) {
		for e, err := range p.Session.Watch(ctx, uris...) {
			if !yield(e, err) {
				return
			}
			if len(uris) == 0 || e.Method != "notifications/subscriptions/acknowledged" {
				continue
			}
			time.Sleep(time.Second)
			for _, uri := range []string{"news://item/77", "news://item/7/page/1", "news://item/7#x", "news://item/7", "news://item"} {
				if !yield(mcp.Event{Method: "notifications/resources/updated", URI: uri, Params: json.RawMessage(`{"uri":"` + uri + `"}`)}, nil) {
					return
				}
			}
		}
	}
}
