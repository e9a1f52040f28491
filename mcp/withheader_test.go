package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Headers of one call go with its HTTP request and no other, through middleware too, and a Handler of
// this process has them as well.
func TestWithHeader(t *testing.T) {
	newServer := func() *mcp.Server {
		srv := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(srv, mcp.Tool{Name: "tenant"}, func(ctx context.Context, _ struct{}) (string, error) {
			return mcp.CallFrom(ctx).Header.Get("X-Tenant"), nil
		})
		srv.Cache.TTL, srv.Cache.Public = time.Hour, true
		mcp.AddResource(srv, mcp.Resource{URI: "app:tenant", Name: "tenant"}, func(ctx context.Context) (string, error) {
			return mcp.CallFrom(ctx).Header.Get("X-Tenant"), nil
		})
		return srv
	}
	tenant := mcp.WithHeader(http.Header{"x-tenant": {"blue"}})
	check := func(t *testing.T, s *mcp.Session, without string) {
		t.Helper()
		for _, tt := range []struct {
			opts []mcp.CallOption
			want string
		}{{nil, without}, {[]mcp.CallOption{tenant}, "blue"}, {nil, without}} {
			if got, err := mcp.CallAs[string](t.Context(), s, "tenant", nil, tt.opts...); err != nil || got != tt.want {
				t.Errorf("the tenant is %q, %v, want %q", got, err, tt.want)
			}
			if res, err := s.ReadResource(t.Context(), "app:tenant", tt.opts...); err != nil || res.Contents[0].Text != tt.want {
				t.Errorf("the resource is %+v, %v, want %q", res, err, tt.want)
			}
		}
		for _, name := range []string{"Mcp-Session-Id", "content-type", "MCP-Protocol-Version"} {
			if _, err := s.CallTool(t.Context(), "tenant", nil, mcp.WithHeader(http.Header{name: {"x"}})); err == nil {
				t.Errorf("a call sets %s", name)
			}
		}
	}
	for _, rev := range mcp.Revisions() {
		for _, middleware := range []bool{false, true} {
			name := string(rev)
			if middleware {
				name += ", middleware"
			}
			t.Run(name, func(t *testing.T) {
				web := httptest.NewServer(newServer())
				defer web.Close()
				c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}, Header: http.Header{"X-Tenant": {"all"}}}
				if middleware {
					c.Use(func(next mcp.Handler) mcp.Handler { return next })
				}
				s, err := c.Dial(t.Context(), web.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				check(t, s, "all")
			})
		}
	}
	t.Run("a Handler of this process", func(t *testing.T) {
		s, err := (&mcp.Client{Name: "c"}).Open(t.Context(), newServer())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		check(t, s, "")
	})
}
