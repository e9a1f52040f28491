package everything

import (
	"context"
	"fmt"
	"sync"

	"github.com/patchbay-dev/patchbay/mcp"
)

// addChanges adds tools that add and remove features, for clients that subscribe to
// changes.
func addChanges(srv *mcp.Server) {
	toggle := func(name, what string, f mcp.Feature, add func()) {
		var mu sync.Mutex
		there := false // guarded by mu
		mcp.AddTool(srv, mcp.Tool{
			Name:        name,
			Description: fmt.Sprintf("Adds %s to the server, or removes it again; subscribers are notified.", what),
			Annotations: &mcp.ToolAnnotations{Destructive: new(false), OpenWorld: new(false)},
		}, func(context.Context, none) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if there = !there; there {
				add()
				return fmt.Sprintf("Added %s.", what), nil
			}
			srv.Remove(f)
			return fmt.Sprintf("Removed %s.", what), nil
		})
	}
	toggle("test_trigger_tool_change", "the tool transient_tool", mcp.Feature{Kind: mcp.KindTool, Name: "transient_tool"}, func() {
		mcp.AddTool(srv, mcp.Tool{Name: "transient_tool", Description: "Exists for a while.", Annotations: harmless},
			func(context.Context, none) (string, error) { return "Still here.", nil })
	})
	toggle("test_trigger_prompt_change", "the prompt transient_prompt", mcp.Feature{Kind: mcp.KindPrompt, Name: "transient_prompt"}, func() {
		mcp.AddPrompt(srv, mcp.Prompt{Name: "transient_prompt", Description: "Exists for a while."},
			func(context.Context, none) (string, error) { return "Enjoy it while it lasts.", nil })
	})
	toggle("test_trigger_resource_change", "the resource test://transient", mcp.Feature{Kind: mcp.KindResource, Name: "test://transient"}, func() {
		mcp.AddResource(srv, mcp.Resource{URI: "test://transient", Name: "Transient", Description: "Exists for a while."},
			func(context.Context) (string, error) { return "Still here.", nil })
	})
}
