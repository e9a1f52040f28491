package mcp_test

import (
	"context"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// The wire of a small session on each revision: opening, list, calls, a question,
// errors (BASE-26-001, BASE-25-001). Reviewed like code; -update rewrites.
func TestGolden(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			calc := func() *mcp.Server {
				s := &mcp.Server{Name: "calc", Title: "Calculator", Version: "1.0.0", Instructions: "Add."}
				mcp.AddTool(s, mcp.Tool{Name: "add", Title: "Addition", Description: "Add two numbers"}, add)
				mcp.AddTool(s, mcp.Tool{Name: "book"}, book)
				mcp.AddResource(s, mcp.Resource{URI: "calc:pi", Name: "pi"}, func(context.Context) (float64, error) { return 3.14, nil })
				return s
			}
			c, file := user(), "testdata/session-"+string(rev)+".txt"
			mcptest.Replay(t, file, calc())
			mcptest.Replay(t, file, mcptest.Mock(t, file))
			mcptest.Golden(t, file, calc(), c, rev, func(s *mcp.Session) {
				ctx := t.Context()
				for _, err := range s.Tools(ctx) {
					if err != nil {
						t.Error(err)
					}
				}
				s.CallTool(ctx, "add", Sum{1, 2})
				s.CallTool(ctx, "add", map[string]any{"a": 1})
				s.CallTool(ctx, "sub", Sum{1, 2})
				s.CallTool(ctx, "book", trip{"2026-12-24"})
				s.ReadResource(ctx, "calc:pi")
				s.ReadResource(ctx, "calc:e")
			})
		})
	}
}
