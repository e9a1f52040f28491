package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// leave removes tools from a result of tools/list.
func leave(res mcp.Result, keep func(name string) bool) mcp.Result {
	raw := res.JSON()
	list, _ := jsonx.Lookup(raw, "tools")
	out := []byte{'['}
	for e := range jsonx.Elements(list) {
		name, _ := jsonx.Lookup(e, "name")
		if !keep(string(name)) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return mcp.RawResult(jsonx.With(nil, raw, "tools", append(out, ']')))
}

// A caller never gets a list that was made for a caller with another client name, other
// capabilities or other support for tasks.
func TestListsAreOfAudiences(t *testing.T) {
	l := &listing{around: func(ctx context.Context, next func() (mcp.Result, error)) (mcp.Result, error) {
		res, err := next()
		call := mcp.CallFrom(ctx)
		return leave(res, func(name string) bool {
			switch name {
			case `"ask"`:
				return call.Capabilities.Has("elicitation")
			case `"which"`:
				return call.Client.Name == "trusted"
			}
			return true
		}), err
	}}
	synctest.Test(t, func(t *testing.T) {
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: l.farm(mcp.V2026_07_28).Open})
		time.Sleep(time.Second)
		srv := &mcp.Server{Name: "gw", Version: "1", Handler: g}
		type caller struct {
			s    *mcp.Session
			want string
		}
		var callers []caller
		for _, rev := range mcp.Revisions() {
			for _, name := range []string{"trusted", "other"} {
				for _, asks := range []bool{true, false} {
					c := &mcp.Client{Name: name, Version: "1"}
					want := "db_whoami"
					if asks {
						c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil }
						if rev >= mcp.V2025_06_18 {
							want += " db_ask"
						}
					}
					if name == "trusted" {
						want += " db_which"
					}
					callers = append(callers, caller{mcptest.Connect(t, srv, c, rev), want})
				}
			}
		}
		for round := range 3 {
			for _, c := range callers {
				if got := named(t, c.s); got != c.want {
					t.Errorf("round %d, %s: tools %s, want %s", round, c.s.Revision(), got, c.want)
				}
			}
		}
	})
}

// A list that was requested through other gateways has its own key, because a server that leads
// back to them omits their entries.
func TestListsAreOfWhoForwards(t *testing.T) {
	for _, back := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctest.Test(t, func(t *testing.T) {
			l := &listing{around: func(ctx context.Context, next func() (mcp.Result, error)) (mcp.Result, error) {
				res, err := next()
				hops := string(mcp.CallFrom(ctx).Meta["dev.patchbay/hops"])
				return leave(res, func(name string) bool { return name != `"which"` || !strings.Contains(hops, "other") }), err
			}}
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "db", Share: gateway.Shared, Open: l.farm(back).Open})
			time.Sleep(time.Second)
			s := connect(t, g, mcp.V2026_07_28)
			for round := range 3 {
				if got, want := named(t, s), "db_whoami db_ask db_which"; got != want {
					t.Errorf("%s, round %d: tools %s, want %s", back, round, got, want)
				}
				raw, err := s.Raw(t.Context(), "tools/list", json.RawMessage(`{"_meta":{"dev.patchbay/hops":["other"]}}`), mcp.WithoutCache())
				if err != nil || strings.Contains(string(raw), "db_which") {
					t.Errorf("%s, round %d: %s, %v for a request that was forwarded", back, round, raw, err)
				}
			}
		})
	}
}

// byScope filters tools of a session by the scopes of the caller: a connection on which the server
// knows the caller.
type byScope struct{ *mcp.Session }

func (b byScope) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	res, err := b.Session.Handle(ctx, req)
	if err == nil && req.Method == "tools/list" {
		p := auth.From(ctx)
		res = leave(res, func(name string) bool { return name != `"which"` || p.HasScope("which") })
	}
	return res, err
}

// A caller never gets a list made for another principal, or for another credential of the same one.
func TestListsAreOfCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listing{}
		f := l.farm(mcp.V2025_11_25)
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Share: gateway.Shared, Open: func(ctx context.Context) (gateway.Upstream, error) {
			up, err := f.Open(ctx)
			if err != nil {
				return nil, err
			}
			return byScope{up.(*mcp.Session)}, nil
		}})
		time.Sleep(time.Second)
		callers := []*auth.Principal{
			{ID: "ada", Scopes: []string{"which"}}, {ID: "ada"}, {ID: "eve"}, nil, {ID: "bob", Scopes: []string{"which"}},
		}
		for round := range 3 {
			for i, p := range callers {
				want := "db_whoami db_ask"
				if p.HasScope("which") {
					want += " db_which"
				}
				if got := toolsOf(t, g, auth.With(t.Context(), p)); got != want {
					t.Errorf("round %d, caller %d: tools %s, want %s", round, i, got, want)
				}
			}
		}
	})
}

// byHeader filters tools of a session by a header of the caller, which a client may pass on.
type byHeader struct{ *mcp.Session }

func (b byHeader) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	res, err := b.Session.Handle(ctx, req)
	if call := mcp.CallFrom(ctx); err == nil && call != nil && req.Method == "tools/list" {
		res = leave(res, func(name string) bool {
			return name != `"which"` || call.Header.Get("Authorization")+call.Header.Get("X-Forwarded-User") != ""
		})
	}
	return res, err
}

// Without authentication, a caller never gets a list made for a caller with another header, because
// a client may pass it on.
func TestListsAreOfHeaders(t *testing.T) {
	f := (&listing{}).farm(mcp.V2025_11_25)
	ready := make(chan struct{}, 10)
	g := &gateway.Gateway{Name: "gw", OnStatus: func(s gateway.Status) {
		if s.State == gateway.Ready {
			ready <- struct{}{}
		}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx, gateway.Source{Name: "db", Share: gateway.Shared, Open: func(ctx context.Context) (gateway.Upstream, error) {
			up, err := f.Open(ctx)
			if err != nil {
				return nil, err
			}
			return byHeader{up.(*mcp.Session)}, nil
		}})
	}()
	t.Cleanup(func() { cancel(); <-done })
	<-ready
	web := httptest.NewServer(&mcp.Server{Name: "gw", Version: "1", Handler: g})
	t.Cleanup(web.Close)
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		callers := map[string]*mcp.Session{}
		for _, header := range []string{"", "Authorization", "X-Forwarded-User", "X-Forwarded-For"} {
			c := &mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{rev}, Header: http.Header{}}
			if header != "" {
				c.Header.Set(header, "ada")
			}
			s, err := c.Dial(t.Context(), web.URL)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			callers[header] = s
		}
		for round := range 2 {
			for header, s := range callers {
				want := "db_whoami db_ask"
				if header == "Authorization" || header == "X-Forwarded-User" {
					want += " db_which"
				}
				got := named(t, s)
				for end := time.Now().Add(time.Minute); len(got) < len(want) && time.Now().Before(end); got = named(t, s) { // a server that is slow to list is left out
					time.Sleep(10 * time.Millisecond)
				}
				if got != want {
					t.Errorf("%s, round %d, with %q: tools %s, want %s", rev, round, header, got, want)
				}
			}
		}
	}
}
