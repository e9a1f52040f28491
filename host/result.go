package host

import (
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// resultParts returns what the model is given of a result.
func (c *Conversation) resultParts(t Tool, res *mcp.ToolResult) []model.Part {
	return []model.Part{{Text: res.Text()}}
}
