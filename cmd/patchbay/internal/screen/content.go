package screen

import (
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Content returns the texts of blocks, and a description of each block without text. It does not
// make the text visible.
func Content(blocks []mcp.Content) string {
	var out []string
	for _, c := range blocks {
		switch c := c.(type) {
		case mcp.TextContent:
			out = append(out, c.Text)
		case mcp.ImageContent:
			out = append(out, fmt.Sprintf("[image %s, %s]", c.MIMEType, Bytes(len(c.Data))))
		case mcp.AudioContent:
			out = append(out, fmt.Sprintf("[audio %s, %s]", c.MIMEType, Bytes(len(c.Data))))
		case mcp.ToolUseContent:
			out = append(out, "[calls "+c.Name+" "+string(c.Input)+"]")
		case mcp.ToolResultContent:
			out = append(out, "[result: "+Content(c.Result.Content)+"]")
		case mcp.EmbeddedResource:
			r := c.Resource
			if r.Blob != nil {
				out = append(out, fmt.Sprintf("[resource %s, %s, %s]", r.URI, r.MIMEType, Bytes(len(r.Blob))))
			} else {
				out = append(out, "[resource "+r.URI+"]\n"+r.Text)
			}
		case mcp.ResourceLink:
			out = append(out, "[link "+c.URI+"]")
		case mcp.RawContent:
			out = append(out, string(c))
		}
	}
	return strings.Join(out, "\n")
}
