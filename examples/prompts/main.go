// Command prompts has a prompt with an image, a resource and an argument that has few values.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

var styles = []string{"brief", "formal", "funny"}

type Caption struct {
	Style string `json:"style" doc:"brief, formal or funny"`
}

// dot is a picture of one pixel.
var dot = []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")

// The arguments of a prompt are text, without a schema: the function checks them.
func caption(_ context.Context, in Caption) ([]mcp.PromptMessage, error) {
	if !slices.Contains(styles, in.Style) {
		return nil, fmt.Errorf("style: must be one of %s, got %q", strings.Join(styles, ", "), in.Style)
	}
	return []mcp.PromptMessage{
		mcp.User("Write a " + in.Style + " caption for this picture, by the rules."),
		{Role: "user", Content: mcp.ImageContent{Data: dot, MIMEType: "image/gif"}},
		{Role: "user", Content: mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "captions://rules", MIMEType: "text/plain", Text: "At most nine words."}}},
	}, nil
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "captions", Version: "1.0.0"}
	mcp.AddPrompt(srv, mcp.Prompt{
		Name: "caption", Description: "Write a caption",
		Complete: map[string]mcp.CompleteFunc{
			"style": func(_ context.Context, prefix string, _ map[string]string) ([]string, error) {
				return slices.DeleteFunc(slices.Clone(styles), func(s string) bool { return !strings.HasPrefix(s, prefix) }), nil
			},
		},
	}, caption)
	return srv
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
