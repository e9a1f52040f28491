package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Progress and log messages arrive in order before the result, and the caller's level applies.
func TestOrder(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{LogLevel: slog.LevelInfo} }, func(t *testing.T, s *mcp.Session) {
		var seen []string
		got, err := mcp.CallAs[string](t.Context(), s, "count", Count{To: 2, Pause: time.Millisecond},
			mcp.OnProgress(func(done, total float64, _ string) { seen = append(seen, fmt.Sprintf("%v/%v", done, total)) }),
			mcp.OnLog(func(m mcp.LogMessage) { seen = append(seen, m.Level.String()) }))
		if err != nil || got != "counted to 2" || !slices.Equal(seen, []string{"1/2", "2/2", "INFO"}) {
			t.Errorf("count = %q, %v, after %q", got, err, seen)
		}
	})
}

// The tool stops when its caller cancels, on every revision.
func TestCancel(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		synctest.Test(t, func(t *testing.T) {
			srv, stopped := newServer(), make(chan error, 1)
			srv.Use(func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					res, err := next.Handle(ctx, req)
					if req.Method == "tools/call" {
						stopped <- ctx.Err()
					}
					return res, err
				})
			})
			s := mcptest.Connect(t, srv, &mcp.Client{}, rev)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := s.CallTool(ctx, "count", Count{To: 1000, Pause: time.Second}, mcp.OnProgress(func(done, _ float64, _ string) {
				if done == 3 {
					cancel()
				}
			}))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: count = %v", rev, err)
			}
			if err := <-stopped; err == nil {
				t.Errorf("%s: the tool counted to the end", rev)
			}
		})
	}
}
