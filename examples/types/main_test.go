package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestTypes(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		call := func(args string) (Schedule, error) {
			return mcp.CallAs[Schedule](t.Context(), s, "plan", json.RawMessage(args))
		}
		got, err := call(`{"start":"2026-12-01T08:00:00Z","steps":[{"title":"dig","takes":"1h30m"},{"title":"plant"}],"owner":{"name":"Ada"},"labels":{"where":"garden"}}`)
		if want := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC); err != nil || !got.Ends.Equal(want) || got.Priority != "normal" {
			t.Errorf("plan = %v, %v, want %v", got, err, want)
		}
		res, err := s.CallTool(t.Context(), "plan", json.RawMessage(`{"start":"soon","steps":[{"title":"","takes":"long"}],"priority":"urgent","owner":{"email":"x"},"labels":{"n":1},"workers":9,"boss":"Eve"}`))
		if err != nil || !res.IsError {
			t.Fatalf("a plan with nine faults = %v, %v", res, err)
		}
		for _, path := range []string{"start:", "steps[0].title:", "steps[0].takes:", "priority:", "owner.email:", `"name"`, "labels.n:", "workers:", "boss"} {
			if !strings.Contains(res.Text(), path) {
				t.Errorf("the error does not name %s: %s", path, res.Text())
			}
		}
		if _, err = call(`{"start":"2026-12-01T08:00:00Z","steps":[{"title":"dig"}],"priority":"high"}`); err == nil || !strings.Contains(err.Error(), "needs an owner") {
			t.Errorf("without an owner: %v", err)
		}
	})
}
