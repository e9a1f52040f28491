//lint:file-ignore SA1019 2026-07-28 deprecates what earlier revisions need; both are tested.

package interop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveGoSDK is the world on github.com/modelcontextprotocol/go-sdk.
func serveGoSDK(ctx context.Context, w wire) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1"}, nil)
	var room waitRoom
	tool := func(name string, h func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: name},
			func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				r, err := h(ctx, req)
				return r, nil, err
			})
	}
	say := func(text string) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	}
	type echo struct {
		Message string `json:"message"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "echo"},
		func(ctx context.Context, _ *mcp.CallToolRequest, in echo) (*mcp.CallToolResult, any, error) {
			r, err := say(in.Message)
			return r, nil, err
		})
	question := func(message string) *mcp.ElicitParams {
		return &mcp.ElicitParams{
			Message: message,
			RequestedSchema: &jsonschema.Schema{
				Type:       "object",
				Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}},
				Required:   []string{"name"},
			},
		}
	}
	tool("ask", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if a, ok := req.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
			return say(fmt.Sprint("hello ", a.Content["name"]))
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": question("What is your name?")}}, nil
	})
	tool("twice", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if a, ok := req.Params.InputResponses["friend"].(*mcp.ElicitResult); ok {
			return say(fmt.Sprint(req.Params.RequestState, " and ", a.Content["name"]))
		}
		if a, ok := req.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{"friend": question("And that of your friend?")},
				RequestState:  fmt.Sprint(a.Content["name"]),
			}, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": question("What is your name?")}}, nil
	})
	tool("sample", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		switch a := req.Params.InputResponses["word"].(type) {
		case *mcp.CreateMessageResult:
			return say("the model said " + a.Content.(*mcp.TextContent).Text)
		case *mcp.CreateMessageWithToolsResult:
			return say("the model said " + a.Content[0].(*mcp.TextContent).Text)
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"word": &mcp.CreateMessageParams{
			MaxTokens: 10,
			Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "ping"}}},
		}}}, nil
	})
	tool("steps", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if token := req.Params.GetProgressToken(); token != nil {
			for i := range 3 {
				p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1), Total: 3}
				if err := req.Session.NotifyProgress(ctx, p); err != nil {
					return nil, err
				}
				apart()
			}
		}
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "working"}); err != nil {
			return nil, err
		}
		return say("done")
	})
	tool("grow", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tool("grown", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("grown") })
		return say("done")
	})
	tool("wait", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		room.wait(ctx)
		return nil, ctx.Err()
	})
	tool("waits", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say(room.String()) })
	content := func(text string) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{Text: text, MIMEType: "text/plain"}}}, nil
	}
	s.AddResource(&mcp.Resource{URI: "test://greeting", Name: "greeting"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return content("hello")
		})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://item/{id}", Name: "item"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return content("item " + strings.TrimPrefix(req.Params.URI, "test://item/"))
		})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Description: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := &mcp.TextContent{Text: "Hello " + req.Params.Arguments["name"]}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: text}}}, nil
		})

	if w == web {
		// One handler of this SDK serves one era: the modern one only without
		// sessions, the legacy one fully only with them.
		one := func(*http.Request) *mcp.Server { return s }
		sessions := mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
		modern := mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{
			Stateless:                    true,
			PropagateRequestCancellation: true,
		})
		return serveHTTP(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if req.Header.Get("MCP-Protocol-Version") >= v2026_07_28 {
				modern.ServeHTTP(rw, req)
				return
			}
			sessions.ServeHTTP(rw, req)
		}))
	}
	return s.Run(ctx, &mcp.StdioTransport{})
}

// askGoSDK is a client on github.com/modelcontextprotocol/go-sdk.
func askGoSDK(ctx context.Context, to target) (report, error) {
	h := newHeard()
	var progress progressBoard
	client := mcp.NewClient(&mcp.Implementation{Name: "gosdk", Version: "1"}, &mcp.ClientOptions{
		Logger: slog.New(slog.DiscardHandler),
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "none", Role: "assistant", Content: &mcp.TextContent{Text: "pong"}}, nil
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { h.changed() },
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
			h.log(logText(req.Params.Data))
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			progress.report(fmt.Sprint(req.Params.ProgressToken), req.Params.Progress)
		},
	})
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: to.url}
	if to.wire == stdio {
		transport = &mcp.CommandTransport{Command: exec.Command(to.command[0], to.command[1:]...)}
	}
	opts := &mcp.ClientSessionOptions{}
	if to.revision != auto {
		opts.ProtocolVersion = to.revision
	}
	s, err := client.Connect(ctx, transport, opts)
	if err != nil {
		return report{}, err
	}
	defer s.Close()
	info := s.InitializeResult()
	c := &caller{revision: info.ProtocolVersion, heard: h}
	if info.ServerInfo != nil {
		c.server = info.ServerInfo.Name
	}
	modern := c.revision >= v2026_07_28
	if !modern {
		if err := s.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
			return report{}, err
		}
	}
	c.tools = func(ctx context.Context) (names []string, err error) {
		for t, err := range s.Tools(ctx, nil) {
			if err != nil {
				return nil, err
			}
			names = append(names, t.Name)
		}
		return names, nil
	}
	c.resources = func(ctx context.Context) (uris []string, err error) {
		for r, err := range s.Resources(ctx, nil) {
			if err != nil {
				return nil, err
			}
			uris = append(uris, r.URI)
		}
		return uris, nil
	}
	c.prompts = func(ctx context.Context) (names []string, err error) {
		for p, err := range s.Prompts(ctx, nil) {
			if err != nil {
				return nil, err
			}
			names = append(names, p.Name)
		}
		return names, nil
	}
	c.call = func(ctx context.Context, tool string, args map[string]any, f func(float64)) (string, error) {
		p := &mcp.CallToolParams{Name: tool, Arguments: args, Meta: mcp.Meta{}}
		if args == nil {
			p.Arguments = map[string]any{}
		}
		if modern {
			p.Meta[mcp.MetaKeyLogLevel] = "debug"
		}
		if f != nil {
			p.SetProgressToken(progress.watch(f))
		}
		r, err := s.CallTool(ctx, p)
		if err != nil {
			return "", err
		}
		var texts []string
		for _, c := range r.Content {
			if t, ok := c.(*mcp.TextContent); ok {
				texts = append(texts, t.Text)
			}
		}
		text := strings.Join(texts, "|")
		if r.IsError {
			return "", errors.New("tool error: " + text)
		}
		return text, nil
	}
	c.read = func(ctx context.Context, uri string) (string, error) {
		r, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			return "", err
		}
		return r.Contents[0].Text, nil
	}
	c.prompt = func(ctx context.Context, name string, args map[string]string) (string, error) {
		r, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
		if err != nil {
			return "", err
		}
		return r.Messages[0].Content.(*mcp.TextContent).Text, nil
	}
	return probe(ctx, c, to), nil
}
