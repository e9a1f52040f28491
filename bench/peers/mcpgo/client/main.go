//go:build unix

// Client is the client on github.com/mark3labs/mcp-go, default settings.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/patchbay-dev/patchbay/bench/target/clientkit"
)

type in struct {
	Message string `json:"message"`
}

func main() {
	o := clientkit.Parse()
	ctx := context.Background()
	c, err := open(ctx, o)
	if err != nil {
		clientkit.Fail(err)
	}
	var first mcp.InitializeRequest
	first.Params.ProtocolVersion = mcp.LATEST_LEGACY_PROTOCOL_VERSION
	first.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if _, err := c.Initialize(ctx, first); err != nil {
		clientkit.Fail(err)
	}
	clientkit.Run(ctx, o, func(ctx context.Context, text string) (string, error) {
		var req mcp.CallToolRequest
		req.Params.Name = "echo"
		req.Params.Arguments = in{text}
		r, err := c.CallTool(ctx, req)
		if err != nil {
			return "", err
		}
		if len(r.Content) == 1 {
			if c, ok := r.Content[0].(mcp.TextContent); ok {
				return c.Text, nil
			}
		}
		return "", fmt.Errorf("the result is not text: %v", r.Content)
	})
	c.Close()
}

func open(ctx context.Context, o clientkit.Options) (*client.Client, error) {
	switch o.Transport {
	case "stdio":
		return client.NewStdioMCPClient(o.Server[0], nil, o.Server[1:]...)
	case "http":
		wire := http.DefaultTransport.(*http.Transport).Clone()
		wire.MaxIdleConnsPerHost = 256 // as in all clients here: the default keeps two
		c, err := client.NewStreamableHttpClient(o.URL, transport.WithHTTPBasicClient(&http.Client{Transport: wire}))
		if err != nil {
			return nil, err
		}
		return c, c.Start(ctx)
	}
	os.Exit(clientkit.Unsupported)
	return nil, nil
}
