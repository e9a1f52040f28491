package screen

import (
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

func TestContent(t *testing.T) {
	got := Content([]mcp.Content{
		mcp.Text("hello"), mcp.ImageContent{MIMEType: "image/png", Data: []byte("x")}, mcp.AudioContent{MIMEType: "audio/ogg", Data: []byte("xy")},
		mcp.ToolUseContent{Name: "add", Input: []byte(`{"a":1}`)},
		mcp.ToolResultContent{Result: mcp.ToolResult{Content: []mcp.Content{mcp.Text("2")}}},
		mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "file:///a", Text: "text"}},
		mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "file:///b", MIMEType: "image/png", Blob: []byte("xyz")}},
		mcp.ResourceLink{Resource: mcp.Resource{URI: "file:///c"}}, mcp.RawContent(`{"type":"new"}`),
	})
	want := `hello
[image image/png, 1 bytes]
[audio audio/ogg, 2 bytes]
[calls add {"a":1}]
[result: 2]
[resource file:///a]
text
[resource file:///b, image/png, 3 bytes]
[link file:///c]
{"type":"new"}`
	if got != want {
		t.Errorf("Content = %q, want %q", got, want)
	}
}
