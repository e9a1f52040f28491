package mcp_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A handler detaches its caller and works on; its messages, questions and
// answer still reach the client.
func TestDetachEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	newServer := func() *mcp.Server {
		s := one(func(ctx context.Context, _ struct{}) (string, error) {
			mcp.Detach(ctx)
			mcp.Progress(ctx, 1, 3, "")
			roots, err := mcp.Roots(ctx)
			if err != nil {
				return "", err
			}
			mcp.Progress(ctx, 2, 3, "")
			mcp.Detach(ctx)
			mcp.Detach(ctx)
			mcp.Progress(ctx, 3, 3, "")
			return roots[0].Name, nil
		})
		s.HTTP.Retry = 5 * time.Millisecond
		return s
	}
	newClient := func() *mcp.Client {
		return &mcp.Client{Name: "c", Roots: func(context.Context) ([]mcp.Root, error) {
			return []mcp.Root{{URI: "file:///x", Name: "x"}}, nil
		}}
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		var done []float64
		res, err := s.CallTool(t.Context(), "ask", nil, mcp.OnProgress(func(at, _ float64, _ string) { done = append(done, at) }))
		if err != nil || res.Text() != "x" {
			t.Fatalf("call = %v, %v", res, err)
		}
		// A call of 2026-07-28 runs twice, and tells its first step twice.
		if !slices.Equal(slices.Compact(done), []float64{1, 2, 3}) {
			t.Errorf("progress = %v", done)
		}
	})
}
