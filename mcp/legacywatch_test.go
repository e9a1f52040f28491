package mcp_test

import (
	"context"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A legacy session over HTTP hears of its resources and of list changes from the server
// itself, unless there is middleware: that has a say in each listen.
func TestLegacySessionHearsOfChanges(t *testing.T) {
	for _, tt := range []struct {
		name       string
		middleware bool
	}{
		{"by the server", false},
		{"through middleware", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.LeakCheck(t)
			srv := library()
			var listens atomic.Int64
			if tt.middleware {
				srv.Use(func(next mcp.Handler) mcp.Handler {
					return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
						if req.Method == "subscriptions/listen" {
							listens.Add(1)
						}
						return next.Handle(ctx, req)
					})
				})
			}
			web := httptest.NewServer(srv)
			t.Cleanup(web.Close)
			c := &mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}}
			s, err := c.Dial(t.Context(), web.URL)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			events := watching(t, t.Context(), s, "lib:text")
			srv.ResourceUpdated("lib:blob") // nobody wants that
			srv.ResourceUpdated("lib:text")
			expect(t, events, "resources/updated lib:text")
			if tt.middleware {
				// That of the lists may still be on its way.
				if listens.Load() == 0 {
					t.Error("the middleware saw no listen")
				}
				return
			}
			mcp.AddPrompt(srv, mcp.Prompt{Name: "late"}, func(context.Context, struct{}) (string, error) { return "", nil })
			expect(t, events, "prompts/list_changed ")
		})
	}
}
