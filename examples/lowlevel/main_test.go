package main

import (
	"errors"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestLowLevel(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		if name := s.Server().Name; name != "lowlevel" {
			t.Errorf("the name is %q", name)
		}
		for tool, err := range s.Tools(t.Context()) {
			if err != nil || tool.Name != "echo" {
				t.Errorf("tool %v, %v", tool, err)
			}
		}
		res, err := s.CallTool(t.Context(), "echo", map[string]int{"a": 1})
		if err != nil || res.Text() != `{"a":1}` {
			t.Errorf("echo = %v, %v", res, err)
		}
		if _, err := s.CallTool(t.Context(), "other", nil); !errors.Is(err, mcp.Errorf(jsonrpc.CodeInvalidParams, "")) {
			t.Errorf("a tool that is not there: %v", err)
		}
		if _, err := s.ReadResource(t.Context(), "x:y"); err == nil {
			t.Error("a resource was read")
		}
	})
}
