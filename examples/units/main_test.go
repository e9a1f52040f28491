package main

import (
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestConvert(t *testing.T) {
	client := func() *mcp.Client { return &mcp.Client{Name: "test", Version: "1.0.0"} }
	mcptest.Every(t, newServer, client, func(t *testing.T, s *mcp.Session) {
		got, err := mcp.CallAs[Converted](t.Context(), s, "convert", Length{Value: 2, From: "mi", To: "km"})
		if err != nil || got != (Converted{3.218688, "km"}) {
			t.Errorf("2 mi = %v, %v", got, err)
		}
		res, err := s.CallTool(t.Context(), "convert", map[string]any{"value": 2, "from": "mile"})
		if err != nil || !res.IsError {
			t.Errorf("2 mile = %v, %v; want a tool error", res, err)
		}
	})
}
