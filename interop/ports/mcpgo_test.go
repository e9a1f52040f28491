package ports

import (
	"bufio"
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// user answers the questions of servers for mcp-go's client.
type user struct {
	action mcp.ElicitationResponseAction
	values map[string]any
	seen   []string // messages of questions
}

func (u *user) Elicit(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	u.seen = append(u.seen, r.Params.Message)
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: u.action, Content: u.values}}, nil
}

func (u *user) CreateMessage(_ context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{
		SamplingMessage: mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.TextContent{Type: "text", Text: "of " + r.SystemPrompt}},
		Model:           "m", StopReason: "endTurn",
	}, nil
}

// open opens a session of mcp-go's client. A call of the function it returns has the text of the
// result, after "error: " if it is a failure.
func open(t *testing.T, over transport.Interface, u *user) (call func(tool string, args map[string]any) string) {
	t.Helper()
	c := client.NewClient(over, client.WithElicitationHandler(u), client.WithSamplingHandler(u))
	t.Cleanup(func() { c.Close() })
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	init := mcp.InitializeRequest{}
	init.Params.ClientInfo = mcp.Implementation{Name: "test", Version: "1"}
	init.Params.Capabilities.Elicitation = &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}
	if _, err := c.Initialize(t.Context(), init); err != nil {
		t.Fatal(err)
	}
	return func(tool string, args map[string]any) string {
		t.Helper()
		req := mcp.CallToolRequest{}
		req.Params.Name, req.Params.Arguments = tool, args
		res, err := c.CallTool(t.Context(), req)
		if err != nil {
			return "error: " + err.Error()
		}
		text := ""
		if res.IsError {
			text = "error: "
		}
		for _, c := range res.Content {
			text += mcp.GetTextFromContent(c)
		}
		return text
	}
}

// stdio starts a port, or the server of one, for mcp-go's client.
func stdio(t *testing.T, env, name string) transport.Interface {
	cmd := self(t, env, name)
	return transport.NewStdioWithOptions(cmd.Path, cmd.Env, nil)
}

func TestTextsOfMCPGo(t *testing.T) {
	for _, of := range []struct {
		name, tool string
		args       map[string]any
		want       string
	}{
		{"mcpgo/inprocess", "dummy_tool", nil, "foo bar"},
		{"mcpgo/inprocesssampling", "ask_llm", map[string]any{"question": "why?"}, "LLM Response (model: m): of You are a helpful assistant."},
		{"mcpgo/samplingserver", "ask_llm", map[string]any{"question": "why?", "system_prompt": "Be brief."}, "LLM Response (model: m): of Be brief."},
		{"mcpgo/typedtools", "greeting", map[string]any{"name": "Ada", "age": 36, "is_vip": true, "languages": []string{"en", "fr"}, "metadata": map[string]any{"location": "London", "timezone": "GMT"}, "any_data": 7},
			"Hello, Ada! You are 36 years old. Welcome back, valued VIP customer! You speak 2 languages: [en fr]. I see you're from London. Your timezone is GMT. I also received some other data: 7."},
		{"mcpgo/typedtools", "greeting", map[string]any{"name": "Ada"}, "Hello, Ada!"},
		{"mcpgo/typedtools", "greeting", map[string]any{"name": ""}, "error: name: "},
		{"mcpgo/structured", "get_weather", map[string]any{"location": "Oslo", "units": "fahrenheit"}, `{"location":"Oslo","temperature":72.5,"units":"fahrenheit"`},
		{"mcpgo/structured", "get_user_profile", map[string]any{"userId": "7"}, `{"id":"7","name":"Ada Lovelace"`},
		{"mcpgo/structured", "get_assets", map[string]any{"limit": 1}, `[{"id":"gold","name":"Gold","value":2100.25,"currency":"USD"}]`},
		{"mcpgo/structured", "manual_structured", map[string]any{"location": "Oslo"}, "Weather in Oslo: 25.0°C, Sunny"},
		{"mcpgo/elicitation", "process_data", map[string]any{"data": "short"}, "Processed 5 characters of data (request #1)"},
	} {
		t.Run(of.name+" "+of.tool, func(t *testing.T) {
			env := portEnv
			if ports[of.name].server != nil {
				env = serveEnv
			}
			if got := open(t, stdio(t, env, of.name), &user{})(of.tool, of.args); !strings.HasPrefix(got, of.want) {
				t.Errorf("%s = %q, want %q", of.tool, got, of.want)
			}
		})
	}
}

func TestQuestionsOfMCPGo(t *testing.T) {
	accept, decline := mcp.ElicitationResponseActionAccept, mcp.ElicitationResponseActionDecline
	long := map[string]any{"data": strings.Repeat("x", 101)}
	for _, of := range []struct {
		name, tool string
		args       map[string]any
		action     mcp.ElicitationResponseAction
		values     map[string]any
		want       string
	}{
		{"mcpgo/multiroundtrip", "deploy", map[string]any{"environment": "test"}, accept, map[string]any{"approve": true}, "deployed to test"},
		{"mcpgo/multiroundtrip", "deploy", map[string]any{"environment": "test"}, accept, map[string]any{"approve": false}, "deployment declined"},
		{"mcpgo/multiroundtrip", "deploy", map[string]any{"environment": "test"}, decline, nil, "deployment cancelled"},
		{"mcpgo/elicitation", "create_project", nil, accept, map[string]any{"projectName": "p"}, "Created project 'p' with framework: none, tests: true"},
		{"mcpgo/elicitation", "create_project", nil, decline, nil, "Project creation cancelled"},
		{"mcpgo/elicitation", "process_data", long, accept, map[string]any{"proceed": true}, "Processed 101 characters of data (request #1)"},
		{"mcpgo/elicitation", "process_data", long, accept, map[string]any{"proceed": false}, "Processing declined: No reason provided"},
		{"mcpgo/elicitation", "auth_via_url", nil, accept, nil, "Authentication flow initiated."},
		{"mcpgo/elicitation", "auth_via_url", nil, decline, nil, "User declined authentication"},
	} {
		t.Run(of.tool+" "+of.want, func(t *testing.T) {
			env := portEnv
			if ports[of.name].server != nil {
				env = serveEnv
			}
			u := &user{action: of.action, values: of.values}
			if got := open(t, stdio(t, env, of.name), u)(of.tool, of.args); !strings.HasPrefix(got, of.want) || len(u.seen) != 1 {
				t.Errorf("%s = %q after the questions %q, want %q", of.tool, got, u.seen, of.want)
			}
		})
	}
}

// A page that must be visited first is a question on 2026-07-28, where the user has agreed but not
// finished.
func TestProtectedAction(t *testing.T) {
	u := &user{action: mcp.ElicitationResponseActionAccept}
	got := open(t, stdio(t, portEnv, "mcpgo/elicitation"), u)("protected_action", nil)
	if !strings.HasPrefix(got, "error: ") || len(u.seen) == 0 || u.seen[0] != "Authorization is required to access this resource." {
		t.Errorf("protected_action = %q after the questions %q", got, u.seen)
	}
}

func TestDynamicPath(t *testing.T) {
	host, port := freeAddr(t)
	start(t, self(t, portEnv, "mcpgo/dynamicpath", "-addr", host+":"+port))
	soon(t, func() error {
		conn, err := net.Dial("tcp", host+":"+port)
		if err == nil {
			conn.Close()
		}
		return err
	})
	for _, tenant := range []string{"acme", "zenith"} {
		over, err := transport.NewSSE("http://" + host + ":" + port + "/api/" + tenant + "/sse")
		if err != nil {
			t.Fatal(err)
		}
		if got := open(t, over, &user{})("echo", map[string]any{"message": tenant}); got != "Echo: "+tenant {
			t.Errorf("%s: echo = %q", tenant, got)
		}
	}
}

// The original clients run with our servers.
func TestClientsOfMCPGo(t *testing.T) {
	for name, of := range map[string]struct {
		client string
		want   []string
	}{
		"mcpgo/samplingserver": {"sampling_client", []string{"Hello, Sampling Demo User! This server supports sampling", "LLM Response (model: mock-llm-v1): Mock LLM response to: 'What is the capital of France?'", "Sampling demo completed"}},
		"mcpgo/rootsserver":    {"roots_client", []string{"client call tool result: Root list: [", "test-project"}},
	} {
		t.Run(of.client, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			server := self(t, portEnv, name)
			cmd := exec.CommandContext(ctx, original(t, of.client), server.Path)
			cmd.Env = server.Env
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = cmd.Stdout
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			missing := of.want
			for lines := bufio.NewScanner(out); len(missing) > 0 && lines.Scan(); { // a client of roots runs until it is stopped
				all.WriteString(lines.Text() + "\n")
				for len(missing) > 0 && strings.Contains(lines.Text(), missing[0]) {
					missing = missing[1:]
				}
			}
			cancel()
			cmd.Wait()
			if len(missing) > 0 {
				t.Errorf("the client does not print %q:\n%s", missing, &all)
			}
		})
	}
}

// Our client describes the original server.
func TestSimpleClient(t *testing.T) {
	got := output(t, self(t, portEnv, "mcpgo/simpleclient", "-stdio", original(t, "typed_tools")))
	for _, want := range []string{"Connected to server: Typed Tools Demo 🚀 (version 1.0.0)", "  1. greeting - Generate a personalized greeting", "Server has 1 tools available"} {
		if !strings.Contains(got, want) {
			t.Errorf("the client prints\n%s\nwant %q", got, want)
		}
	}
}
