package main

import (
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestHello(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		if got, err := mcp.CallAs[string](t.Context(), s, "greet", Person{"Ada"}); got != "Hello, Ada" {
			t.Errorf("greet = %q, %v", got, err)
		}
	})
}
