package main

import (
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestCompose(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		for tool, want := range map[string]string{"morning_greet": "Good morning", "evening_greet": "Good evening"} {
			if got, err := mcp.CallAs[string](t.Context(), s, tool, nil); err != nil || got != want {
				t.Errorf("%s = %q, %v", tool, got, err)
			}
		}
	})
}
