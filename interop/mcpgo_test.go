//lint:file-ignore SA1019 2026-07-28 deprecates what earlier revisions need; both are tested.

package interop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// serveMCPGo is the world on github.com/mark3labs/mcp-go.
func serveMCPGo(_ context.Context, w wire) error {
	s := server.NewMCPServer("mcpgo", "1", server.WithToolCapabilities(true), server.WithLogging(),
		server.WithResourceCapabilities(false, true), server.WithPromptCapabilities(true))
	s.EnableSampling()
	var room waitRoom
	type result = mcp.CallToolResult
	tool := func(name string, h func(ctx context.Context, req mcp.CallToolRequest) (*result, error), opts ...mcp.ToolOption) {
		s.AddTool(mcp.NewTool(name, append(opts, mcp.WithDescription(name))...), h)
	}
	say := func(text string) (*result, error) { return mcp.NewToolResultText(text), nil }
	tool("echo", func(_ context.Context, req mcp.CallToolRequest) (*result, error) {
		return say(req.GetString("message", ""))
	}, mcp.WithString("message", mcp.Required()))
	question := func(message string) mcp.ElicitationParams {
		return mcp.ElicitationParams{
			Message: message,
			RequestedSchema: map[string]any{
				"type":       "object",
				"properties": map[string]any{"name": map[string]any{"type": "string"}},
				"required":   []string{"name"},
			},
		}
	}
	answer := func(req mcp.CallToolRequest, key string) any {
		if a := server.ElicitationResponse(req.Params.InputResponses, key); a != nil {
			return a.Content.(map[string]any)["name"]
		}
		return nil
	}
	tool("ask", func(_ context.Context, req mcp.CallToolRequest) (*result, error) {
		if name := answer(req, "name"); name != nil {
			return say(fmt.Sprint("hello ", name))
		}
		return server.NewInputRequestBuilder("").Elicit("name", question("What is your name?")).ToolResult(), nil
	})
	tool("twice", func(_ context.Context, req mcp.CallToolRequest) (*result, error) {
		if friend := answer(req, "friend"); friend != nil {
			return say(fmt.Sprint(req.Params.RequestState, " and ", friend))
		}
		if name := answer(req, "name"); name != nil {
			return server.NewInputRequestBuilder(fmt.Sprint(name)).Elicit("friend", question("And that of your friend?")).ToolResult(), nil
		}
		return server.NewInputRequestBuilder("").Elicit("name", question("What is your name?")).ToolResult(), nil
	})
	tool("sample", func(_ context.Context, req mcp.CallToolRequest) (*result, error) {
		if a := server.SamplingResponse(req.Params.InputResponses, "word"); a != nil {
			return say("the model said " + mcpGoText(a.Content))
		}
		return server.NewInputRequestBuilder("").Sample("word", mcp.CreateMessageParams{
			MaxTokens: 10,
			Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent("ping")}},
		}).ToolResult(), nil
	})
	tool("steps", func(ctx context.Context, req mcp.CallToolRequest) (*result, error) {
		if req.Params.Meta != nil && req.Params.Meta.ProgressToken != nil {
			for i := range 3 {
				p := map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": i + 1, "total": 3}
				if err := s.SendNotificationToClient(ctx, "notifications/progress", p); err != nil {
					return nil, err
				}
				apart()
			}
		}
		note := mcp.NewLoggingMessageNotification(mcp.LoggingLevelInfo, "", "working")
		if err := s.SendLogMessageToClient(ctx, note); err != nil {
			return nil, err
		}
		apart() // its notifications and results take different paths
		return say("done")
	})
	tool("grow", func(context.Context, mcp.CallToolRequest) (*result, error) {
		tool("grown", func(context.Context, mcp.CallToolRequest) (*result, error) { return say("grown") })
		return say("done")
	})
	tool("wait", func(ctx context.Context, _ mcp.CallToolRequest) (*result, error) {
		room.wait(ctx)
		return nil, ctx.Err()
	})
	tool("waits", func(context.Context, mcp.CallToolRequest) (*result, error) { return say(room.String()) })
	content := func(uri, text string) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: text}}, nil
	}
	s.AddResource(mcp.NewResource("test://greeting", "greeting"),
		func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return content(req.Params.URI, "hello")
		})
	s.AddResourceTemplate(mcp.NewResourceTemplate("test://item/{id}", "item"),
		func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return content(req.Params.URI, "item "+strings.TrimPrefix(req.Params.URI, "test://item/"))
		})
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("name", mcp.RequiredArgument())),
		func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := mcp.NewTextContent("Hello " + req.Params.Arguments["name"])
			return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, text)}), nil
		})

	if w == web {
		quiet := slog.New(slog.DiscardHandler)
		return serveHTTP(server.NewStreamableHTTPServer(s, server.WithStateful(true), server.WithEventStore(server.NewInMemoryEventStore()), server.WithStreamableHTTPLogger(quiet)))
	}
	return server.ServeStdio(s)
}

// mcpGoText is the text of a content that mcp-go left as it decoded it.
func mcpGoText(content any) string {
	switch c := content.(type) {
	case mcp.TextContent:
		return c.Text
	case map[string]any:
		return fmt.Sprint(c["text"])
	}
	return fmt.Sprintf("%T", content)
}

// mcpGoUser answers what a server asks a client of mcp-go.
type mcpGoUser struct{}

func (mcpGoUser) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"name": "Ada"},
	}}, nil
}

func (mcpGoUser) CreateMessage(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{Model: "none", SamplingMessage: mcp.SamplingMessage{
		Role: mcp.RoleAssistant, Content: mcp.NewTextContent("pong"),
	}}, nil
}

// askMCPGo is a client on github.com/mark3labs/mcp-go.
func askMCPGo(ctx context.Context, to target) (report, error) {
	var t transport.Interface
	if to.wire == stdio {
		t = transport.NewStdioWithOptions(to.command[0], os.Environ(), to.command[1:])
	} else {
		// A legacy client gets unsolicited messages only on the GET stream.
		opts := []transport.StreamableHTTPCOption{transport.WithHTTPLogger(slog.New(slog.DiscardHandler))}
		if to.revision != auto && to.revision < v2026_07_28 {
			opts = append(opts, transport.WithContinuousListening())
		}
		var err error
		if t, err = transport.NewStreamableHTTP(to.url, opts...); err != nil {
			return report{}, err
		}
	}
	opts := []client.ClientOption{client.WithElicitationHandler(mcpGoUser{}), client.WithSamplingHandler(mcpGoUser{})}
	if to.revision != auto {
		opts = append(opts, client.WithProtocolVersion(to.revision))
	}
	cl := client.NewClient(t, opts...)
	defer cl.Close()
	if err := cl.Start(ctx); err != nil {
		return report{}, err
	}
	h := newHeard()
	var progress progressBoard
	cl.OnNotification(func(n mcp.JSONRPCNotification) {
		p := n.Params.AdditionalFields
		switch n.Method {
		case "notifications/message":
			h.log(logText(p["data"]))
		case "notifications/tools/list_changed":
			h.changed()
		case "notifications/progress":
			v, _ := p["progress"].(float64)
			progress.report(fmt.Sprint(p["progressToken"]), v)
		}
	})
	init := mcp.InitializeRequest{}
	init.Params.ClientInfo = mcp.Implementation{Name: "mcpgo", Version: "1"}
	info, err := cl.Initialize(ctx, init)
	if err != nil {
		return report{}, err
	}
	level := mcp.SetLevelRequest{}
	level.Params.Level = mcp.LoggingLevelDebug
	if err := cl.SetLevel(ctx, level); err != nil {
		return report{}, err
	}
	if mcp.IsModernProtocol(cl.ProtocolVersion()) {
		stop, err := cl.ListenAsync(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, nil)
		if err != nil {
			return report{}, err
		}
		defer stop()
	}

	c := &caller{server: info.ServerInfo.Name, revision: info.ProtocolVersion, heard: h}
	c.tools = func(ctx context.Context) (names []string, err error) {
		r, err := cl.ListTools(ctx, mcp.ListToolsRequest{})
		if err != nil {
			return nil, err
		}
		for _, t := range r.Tools {
			names = append(names, t.Name)
		}
		return names, nil
	}
	c.resources = func(ctx context.Context) (uris []string, err error) {
		r, err := cl.ListResources(ctx, mcp.ListResourcesRequest{})
		if err != nil {
			return nil, err
		}
		for _, x := range r.Resources {
			uris = append(uris, x.URI)
		}
		return uris, nil
	}
	c.prompts = func(ctx context.Context) (names []string, err error) {
		r, err := cl.ListPrompts(ctx, mcp.ListPromptsRequest{})
		if err != nil {
			return nil, err
		}
		for _, p := range r.Prompts {
			names = append(names, p.Name)
		}
		return names, nil
	}
	c.call = func(ctx context.Context, tool string, args map[string]any, f func(float64)) (string, error) {
		if args == nil {
			args = map[string]any{} // a nil map is sent as null, which TypeScript servers refuse
		}
		req := mcp.CallToolRequest{}
		req.Params.Name, req.Params.Arguments = tool, args
		if f != nil {
			req.Params.Meta = &mcp.Meta{ProgressToken: progress.watch(f)}
		}
		r, err := cl.CallTool(ctx, req)
		if err != nil {
			return "", err
		}
		var texts []string
		for _, c := range r.Content {
			texts = append(texts, mcpGoText(c))
		}
		text := strings.Join(texts, "|")
		if r.IsError {
			return "", errors.New("tool error: " + text)
		}
		return text, nil
	}
	c.read = func(ctx context.Context, uri string) (string, error) {
		req := mcp.ReadResourceRequest{}
		req.Params.URI = uri
		r, err := cl.ReadResource(ctx, req)
		if err != nil {
			return "", err
		}
		text, ok := r.Contents[0].(mcp.TextResourceContents)
		if !ok {
			return "", fmt.Errorf("contents of %s are %T", uri, r.Contents[0])
		}
		return text.Text, nil
	}
	c.prompt = func(ctx context.Context, name string, args map[string]string) (string, error) {
		req := mcp.GetPromptRequest{}
		req.Params.Name, req.Params.Arguments = name, args
		r, err := cl.GetPrompt(ctx, req)
		if err != nil {
			return "", err
		}
		return mcpGoText(r.Messages[0].Content), nil
	}
	return probe(ctx, c, to), nil
}
