package main

import (
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

const recording = "testdata/session.txt"

// The frames on the wire are those of the recording, which -mcptest.update writes again.
func TestGolden(t *testing.T) {
	client := &mcp.Client{Name: "test", Version: "1.0.0"}
	mcptest.Golden(t, recording, newServer(), client, mcp.V2025_11_25, func(s *mcp.Session) {
		for _, word := range []string{"cat", "cow"} {
			if _, err := s.CallTool(t.Context(), "translate", Word{word}); err != nil {
				t.Error(err)
			}
		}
	})
}

// The server still answers the recorded requests as it did.
func TestReplay(t *testing.T) { mcptest.Replay(t, recording, newServer()) }

// A client is tested without the server: the mock answers as recorded.
func TestClient(t *testing.T) {
	s := mcptest.Connect(t, mcptest.Mock(t, recording), &mcp.Client{Name: "test"}, mcp.V2026_07_28)
	if got, err := mcp.CallAs[string](t.Context(), s, "translate", Word{"cat"}); err != nil || got != "chat" {
		t.Errorf("translate = %q, %v", got, err)
	}
}
