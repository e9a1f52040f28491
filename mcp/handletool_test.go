package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A tool of package openapi checks arguments with a schema that is compiled at the first call. One that does not compile, which is
// against its contract, gives an error with the reason.
func TestHandleToolLater(t *testing.T) {
	s := &mcp.Server{Name: "api", Version: "1"}
	h := func(_ context.Context, args json.RawMessage) (any, error) {
		if string(args) == `{"n":0}` {
			return nil, errors.New("zero")
		}
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(string(args))}}, nil
	}
	for name, schema := range map[string]string{"good": `{"type":"object","properties":{"n":{"type":"integer"}}}`, "bad": `{"type":"object","properties":{"n":{"pattern":"("}}}`} {
		if err := engine.HandleTool(s, mcp.Tool{Name: name, InputSchema: json.RawMessage(schema)}, h); err != nil {
			t.Fatal(err)
		}
	}
	if err := engine.HandleTool(s, mcp.Tool{Name: "a b", InputSchema: json.RawMessage(`{"type":"object"}`)}, h); err == nil || !strings.Contains(err.Error(), `"a b"`) {
		t.Errorf("a tool with a space in its name: %v", err)
	}
	session := mcptest.Connect(t, s, nothing(), mcp.V2026_07_28)
	for _, tt := range []struct{ tool, args, want string }{
		{"good", `{"n":1}`, `{"n":1}`},
		{"good", `{"n":2}`, `{"n":2}`},
		{"good", `{"n":"x"}`, `must be an integer`},
		{"good", `{"n":0}`, `zero`},
		{"bad", `{"n":1}`, "the input schema of the tool cannot be used: schema: not a valid schema"},
		{"bad", `{"n":1}`, "the input schema of the tool cannot be used: schema: not a valid schema"},
	} {
		res, err := session.CallTool(t.Context(), tt.tool, json.RawMessage(tt.args))
		if err != nil || !strings.Contains(res.Text(), tt.want) || res.IsError == (tt.want == tt.args) {
			t.Errorf("%s with %s: %v, %v, want %s", tt.tool, tt.args, res, err, tt.want)
		}
	}
}
