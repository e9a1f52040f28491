package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// An answer with 300 tools at hand costs at most 515 tokens of prompt: the tools are not in it, but can be found.
func TestTokensOfThreeHundredTools(t *testing.T) {
	dir := alone(t)
	servers := map[string]any{}
	for _, name := range []string{"github", "calendar", "warehouse"} {
		s := &mcp.Server{Name: name, Version: "1"}
		for i := range 100 {
			tool := mcp.Tool{Name: fmt.Sprintf("do_thing_%d", i), Description: "Does one of many things. " + strings.Repeat("It explains itself at length. ", 5),
				InputSchema: json.RawMessage(`{"type":"object","properties":{"first":{"type":"string","description":"what"},"second":{"type":"integer"}},"required":["first"]}`)}
			err := s.HandleTool(tool, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return &mcp.ToolResult{}, nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		web := httptest.NewServer(s)
		t.Cleanup(web.Close)
		servers[name] = map[string]any{"url": web.URL}
	}
	writeConfig(t, filepath.Join(dir, "mcp.json"), servers)
	for _, api := range apis {
		model := scripted(t, modeltest.MustParse("turns: [{answer: [text: Hello.]}]"))
		typed(t, "", "run", "hello", "-m", api+"/scripted", "--config", "mcp.json").expect(t, exitOK, "Hello.\n")
		req := model.Requests()[0]
		size := text.Tokens(len(req.Body))
		t.Logf("%s: %d tokens, tools %v", api, size, req.Tools)
		if size > 515 || len(req.Tools) < 2 {
			t.Errorf("%s: the request has %d tokens and the tools %v, want 515 tokens at most: %s", api, size, req.Tools, req.Body)
		}
	}
}
