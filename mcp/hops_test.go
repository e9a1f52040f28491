package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A forwarded request says who has forwarded it, on every revision of either side, in _meta and in
// HTTP in a header too; one that has come through this process, or through more than 8, is refused
// (trap 1).
func TestHops(t *testing.T) {
	const before = `["a","b"]`
	with := func(list string) mcp.CallOption {
		return mcp.WithMeta(mcp.Meta{hop.Meta: json.RawMessage(list)})
	}
	for _, front := range mcp.Revisions() {
		for _, back := range mcp.Revisions() {
			t.Run(string(front+" on "+back), func(t *testing.T) {
				var mu sync.Mutex
				var meta, header string
				s := &mcp.Server{Name: "s", Version: "1"}
				mcp.AddTool(s, mcp.Tool{Name: "t"}, func(ctx context.Context, _ struct{}) (string, error) {
					mu.Lock()
					defer mu.Unlock()
					meta = string(mcp.CallFrom(ctx).Meta[hop.Meta])
					return "", nil
				})
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					header = r.Header.Get(hop.Header)
					mu.Unlock()
					s.ServeHTTP(w, r)
				}))
				t.Cleanup(srv.Close)
				of := http.Header{hop.Header: {hop.Self}} // as gateway.Relay does
				up, err := (&mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{back}, Header: of}).Dial(t.Context(), srv.URL)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { up.Close() })
				c := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: up}, &mcp.Client{Name: "c", Version: "1"}, front)
				for _, tt := range []struct{ list, want string }{
					{``, `["` + hop.Self + `"]`},
					{before, `["a","b","` + hop.Self + `"]`},
				} {
					var opts []mcp.CallOption
					if tt.list != "" {
						opts = append(opts, with(tt.list))
					}
					if _, err := c.CallTool(t.Context(), "t", nil, opts...); err != nil {
						t.Fatalf("call after %s: %v", tt.list, err)
					}
					mu.Lock()
					if want := hop.HeaderOf(json.RawMessage(tt.want)); meta != tt.want || header != want {
						t.Errorf("after %s the server was told %s and %q, want %s and %q", tt.list, meta, header, tt.want, want)
					}
					meta = "not called"
					mu.Unlock()
				}
				for _, list := range []string{`["` + hop.Self + `"]`, `["1","2","3","4","5","6","7","8","9"]`} {
					if _, err := c.CallTool(t.Context(), "t", nil, with(list)); err == nil || !hop.Loops(err.Error()) {
						t.Errorf("call after %s: %v, want it refused", list, err)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if meta != "not called" {
					t.Errorf("a request that goes in circles has reached the server, with %s", meta)
				}
			})
		}
	}
}

// A request of the API, which nobody forwards, says nothing of hops.
func TestNoHopsOfOwnRequests(t *testing.T) {
	s := &mcp.Server{Name: "s", Version: "1"}
	var got []string
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			got = append(got, string(req.Params))
			return next.Handle(ctx, req)
		})
	})
	mcp.AddTool(s, mcp.Tool{Name: "t"}, func(context.Context, struct{}) (string, error) { return "", nil })
	if _, err := mcptest.Connect(t, s, &mcp.Client{Name: "c", Version: "1"}, mcp.V2026_07_28).CallTool(t.Context(), "t", nil); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(got, "\n"); text == "" || strings.Contains(text, hop.Meta) {
		t.Errorf("the server was sent %s", text)
	}
}
