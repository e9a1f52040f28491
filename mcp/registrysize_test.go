package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Adding a tool, and asking whether there is one, do not cost the size of the registry: servers with
// 11,000 tools are made one tool at a time.
func TestAddToLargeRegistry(t *testing.T) {
	s := &mcp.Server{Name: "s", Version: "1"}
	add := func(i int) {
		name := fmt.Sprintf("tool_%d", i)
		if s.HasTool(name) {
			t.Fatalf("%s is there already", name)
		}
		err := s.HandleTool(mcp.Tool{Name: name}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return nil, nil })
		if err != nil || !s.HasTool(name) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for i := range 5000 {
		add(i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 10 {
		add(5000 + i)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / 10; each > 100<<10 {
		t.Errorf("adding one allocates %d bytes", each)
	}
}
