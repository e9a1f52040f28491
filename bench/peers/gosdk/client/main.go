//go:build unix

// Client is the client on github.com/modelcontextprotocol/go-sdk, default settings.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/patchbay-dev/patchbay/bench/target/clientkit"
)

type in struct {
	Message string `json:"message"`
}

func main() {
	o := clientkit.Parse()
	ctx := context.Background()
	var t mcp.Transport
	switch o.Transport {
	case "stdio":
		t = &mcp.CommandTransport{Command: exec.Command(o.Server[0], o.Server[1:]...)}
	case "http":
		wire := http.DefaultTransport.(*http.Transport).Clone()
		wire.MaxIdleConnsPerHost = 256 // as in all clients here: the default keeps two
		t = &mcp.StreamableClientTransport{Endpoint: o.URL, HTTPClient: &http.Client{Transport: wire}}
	default:
		os.Exit(clientkit.Unsupported)
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, t, nil)
	if err != nil {
		clientkit.Fail(err)
	}
	clientkit.Run(ctx, o, func(ctx context.Context, text string) (string, error) {
		r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: in{text}})
		if err != nil {
			return "", err
		}
		if len(r.Content) == 1 {
			if c, ok := r.Content[0].(*mcp.TextContent); ok {
				return c.Text, nil
			}
		}
		return "", fmt.Errorf("the result is not text: %v", r.Content)
	})
	s.Close()
}
