package interop

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/patchbay-dev/patchbay/mcp"
)

// bridge is the command that connects the TypeScript transports to stdio.
func bridge(args ...string) []string {
	path, _ := nodeBinary() // the tests have asked before
	return append([]string{path, npmFile("peers", "sse_bridge.mjs")}, args...)
}

// oldWires serves the world on HTTP+SSE and WebSocket: Patchbay in front, as a proxy of
// its own server on stdio.
func oldWires(t *testing.T) (sse, ws string) {
	t.Helper()
	command := goServer("patchbay")(stdio)
	world, err := (&mcp.Client{
		Name: "proxy", LogLevel: slog.LevelDebug,
		OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			t.Error("the proxy was asked itself")
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
		OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
			t.Error("the proxy was asked itself")
			return nil, context.Canceled
		},
	}).Start(t.Context(), exec.Command(command[0], command[1:]...))
	if err != nil {
		t.Fatal(err)
	}
	srv := &mcp.Server{Name: "patchbay", Version: "1", Handler: world}
	old := srv.SSE("/messages")
	mux := http.NewServeMux()
	mux.Handle("/old/sse", http.StripPrefix("/old", old)) // behind a prefix
	mux.Handle("/old/messages", http.StripPrefix("/old", old))
	mux.Handle("/ws", srv.WebSocket())
	hs := httptest.NewServer(mux)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = srv.Shutdown(ctx) // remaining clients are disconnected
		hs.Close()
		world.Close()
	})
	return hs.URL + "/old/sse", "ws" + strings.TrimPrefix(hs.URL, "http") + "/ws"
}

// TestOldWiresTS runs Patchbay with the HTTP+SSE and WebSocket transports of the
// TypeScript SDK (SSE-24-004 to -007).
func TestOldWiresTS(t *testing.T) {
	node(t)
	check := func(t *testing.T, name string, to target, ask func(context.Context, target) (report, error), serverName string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		got, err := ask(ctx, to)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := goodReport(serverName, to.revision)
		if to.revision < v2025_06_18 {
			unasked(t, &want, got, nil)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, report (-want +got):\n%s", name, diff)
		}
	}
	for _, w := range []string{"sse", "websocket"} {
		t.Run("client over "+w, func(t *testing.T) {
			sse, ws := oldWires(t)
			url := map[string]string{"sse": sse, "websocket": ws}[w]
			check(t, "ts1 client", target{wire: stdio, revision: v2025_11_25, command: bridge(w, url)}, askScript("client-v1.mjs"), "patchbay")
		})
	}
	for _, revision := range legacy {
		t.Run("server over sse, "+revision, func(t *testing.T) {
			path, _ := nodeBinary()
			url := startServer(t, bridge("serve", path, npmFile("peers", "server-v1.mjs"), "stdio"))
			check(t, "ts1 server", target{wire: web, revision: revision, url: url}, askOurs, "ts1")
		})
	}
}

// TestProgramSSE calls the servers of serve, up and bridge with --sse through the SSEClientTransport
// of the TypeScript SDK.
func TestProgramSSE(t *testing.T) {
	node(t)
	for verb, more := range map[string][]string{"serve": {"everything"}, "up": {"-s", "everything"}, "bridge": {"-s", "everything"}} {
		t.Run(verb, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			url := startServer(t, patchbay(t, append(append([]string{verb}, more...), "--http", "127.0.0.1:0", "--sse")...), home(t)...)
			command := bridge("sse", strings.TrimSuffix(url, "/mcp")+"/sse")
			s, err := (&mcp.Client{Name: "patchbay", Revisions: []mcp.Revision{mcp.V2024_11_05}}).Start(ctx, exec.CommandContext(ctx, command[0], command[1:]...))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			tool := map[string]string{"serve": "echo", "up": "everything_echo", "bridge": "echo"}[verb]
			if r, err := s.CallTool(ctx, tool, map[string]any{"message": "plug"}); err != nil || r.Text() != "plug" {
				t.Errorf("echo = %v, %v", r, err)
			}
		})
	}
}

// TestOldWiresGo runs Patchbay with HTTP+SSE of the Go SDKs.
func TestOldWiresGo(t *testing.T) {
	type in struct {
		Message string `json:"message"`
	}
	ours := func(t *testing.T, h http.Handler, path string) {
		t.Helper()
		hs := httptest.NewServer(h)
		t.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
		s, err := (&mcp.Client{Name: "patchbay"}).Dial(t.Context(), hs.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if !strings.Contains(s.Negotiation(), "HTTP+SSE") {
			t.Errorf("opened by %q", s.Negotiation())
		}
		var progress []float64
		r, err := s.CallTool(t.Context(), "echo", in{"plug"}, mcp.OnProgress(func(done, _ float64, _ string) { progress = append(progress, done) }))
		if err != nil || r.Text() != "plug" || !slices.Equal(progress, []float64{1}) {
			t.Errorf("echo = %v, %v, progress %v", r, err, progress)
		}
	}
	t.Run("server of gosdk", func(t *testing.T) {
		s := gosdk.NewServer(&gosdk.Implementation{Name: "gosdk", Version: "1"}, nil)
		gosdk.AddTool(s, &gosdk.Tool{Name: "echo"}, func(ctx context.Context, req *gosdk.CallToolRequest, a in) (*gosdk.CallToolResult, any, error) {
			err := req.Session.NotifyProgress(ctx, &gosdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1})
			return &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: a.Message}}}, nil, err
		})
		ours(t, gosdk.NewSSEHandler(func(*http.Request) *gosdk.Server { return s }, nil), "/sse")
	})
	t.Run("server of mcpgo", func(t *testing.T) {
		s := server.NewMCPServer("mcpgo", "1", server.WithToolCapabilities(true))
		s.AddTool(mcpgo.NewTool("echo", mcpgo.WithString("message")), func(ctx context.Context, req mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			p := map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": 1}
			if err := s.SendNotificationToClient(ctx, "notifications/progress", p); err != nil {
				return nil, err
			}
			apart() // its notifications and results take different paths
			return mcpgo.NewToolResultText(req.GetString("message", "")), nil
		})
		ours(t, server.NewSSEServer(s), "/sse")
	})
	t.Run("client of gosdk", func(t *testing.T) {
		sse, _ := oldWires(t)
		c := gosdk.NewClient(&gosdk.Implementation{Name: "gosdk", Version: "1"}, nil)
		s, err := c.Connect(t.Context(), &gosdk.SSEClientTransport{Endpoint: sse}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.CallTool(t.Context(), &gosdk.CallToolParams{Name: "echo", Arguments: in{"plug"}})
		if err != nil || len(r.Content) != 1 || r.Content[0].(*gosdk.TextContent).Text != "plug" {
			t.Errorf("echo = %+v, %v", r, err)
		}
	})
	t.Run("client of mcpgo", func(t *testing.T) {
		sse, _ := oldWires(t)
		c, err := client.NewSSEMCPClient(sse)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		init := mcpgo.InitializeRequest{}
		init.Params.ProtocolVersion = v2025_11_25
		init.Params.ClientInfo = mcpgo.Implementation{Name: "mcpgo", Version: "1"}
		if _, err := c.Initialize(t.Context(), init); err != nil {
			t.Fatal(err)
		}
		req := mcpgo.CallToolRequest{}
		req.Params.Name, req.Params.Arguments = "echo", in{"plug"}
		r, err := c.CallTool(t.Context(), req)
		if err != nil || len(r.Content) != 1 || r.Content[0].(mcpgo.TextContent).Text != "plug" {
			t.Errorf("echo = %+v, %v", r, err)
		}
	})
}
