package ports

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/interop/ports/gosdk/middleware"
)

// connect opens a session of go-sdk's client.
func connect(t *testing.T, transport mcp.Transport, user *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, user).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// call returns the text of a result, after "error: " if it is a tool error.
func call(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	text := ""
	if res.IsError {
		text = "error: "
	}
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	return text
}

func TestGreetingsOfGoSDK(t *testing.T) {
	for name, env := range map[string]string{"gosdk/hello": portEnv, "gosdk/basic": serveEnv} {
		s := connect(t, &mcp.CommandTransport{Command: self(t, env, name)}, nil)
		if got := call(t, s, "greet", map[string]any{"name": "Ada"}); got != "Hi Ada" {
			t.Errorf("%s: greet = %q", name, got)
		}
	}
}

// The server logs to standard output, as its original does, so it has another wire.
func TestMiddlewareOfGoSDK(t *testing.T) {
	srv := middleware.NewServer()
	web := httptest.NewServer(srv)
	defer web.Close()
	defer srv.Shutdown(t.Context())
	s := connect(t, &mcp.StreamableClientTransport{Endpoint: web.URL}, nil)
	if got := call(t, s, "greet", map[string]any{"name": "Ada"}); got != "Hello, Ada!" {
		t.Errorf("greet = %q", got)
	}
}

// The original listfeatures lists ours, and ours lists the original.
func TestListFeatures(t *testing.T) {
	const want = "tools:\n\tgreet\n\n"
	theirs := exec.Command(original(t, "listfeatures"), self(t, portEnv, "gosdk/hello").Path)
	theirs.Env = self(t, portEnv, "gosdk/hello").Env
	if got := output(t, theirs); got != want {
		t.Errorf("go-sdk's client lists %q of our server, want %q", got, want)
	}
	if got := output(t, self(t, portEnv, "gosdk/listfeatures", original(t, "hello"))); got != want {
		t.Errorf("our client lists %q of go-sdk's server, want %q", got, want)
	}
}

func TestCompletion(t *testing.T) {
	s := connect(t, &mcp.CommandTransport{Command: self(t, portEnv, "gosdk/completion")}, nil)
	for _, of := range []struct {
		ref  mcp.CompleteReference
		want []string
	}{
		{mcp.CompleteReference{Type: "ref/prompt", Name: "prompt"}, []string{"suggestion1", "suggestion2", "suggestion3"}},
		{mcp.CompleteReference{Type: "ref/resource", URI: "test://{value}"}, []string{"suggestion4", "suggestion5", "suggestion6"}},
	} {
		res, err := s.Complete(t.Context(), &mcp.CompleteParams{Ref: &of.ref, Argument: mcp.CompleteParamsArgument{Name: "value"}})
		if err != nil || !slices.Equal(res.Completion.Values, of.want) {
			t.Errorf("completion of %v = %v, %v, want %q", of.ref, res, err, of.want)
		}
	}
}

func TestElicitationOfGoSDK(t *testing.T) {
	s := connect(t, &mcp.CommandTransport{Command: self(t, serveEnv, "gosdk/elicitation")}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Params.Message != "Please provide your configuration settings" {
				return nil, fmt.Errorf("the question is %q", r.Params.Message)
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"serverEndpoint": "https://a.example", "maxRetries": 2.0, "enableLogs": false}}, nil
		},
	})
	if got, want := call(t, s, "configure", nil), "Configuration received: Endpoint: https://a.example, Max Retries: 2, Logs: false"; got != want {
		t.Errorf("configure = %q, want %q", got, want)
	}
}

type phrase struct {
	mcp.ParamsBase
	Text string `json:"text"`
}

type translation struct {
	mcp.ResultBase
	Latin string `json:"latin"`
}

func TestCustomMethod(t *testing.T) {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	if err := mcp.AddSendingCustomMethod[*phrase, *translation](client, "latin/translate"); err != nil {
		t.Fatal(err)
	}
	s, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: self(t, serveEnv, "gosdk/custommethod")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for text, want := range map[string]string{" PEACE ": "pax", "computer": `["computer" is not in the list: ["bread"`} {
		res, err := mcp.CallCustomMethod[*phrase, *translation](t.Context(), s, "latin/translate", &phrase{Text: text})
		if err != nil || !strings.HasPrefix(res.Latin, want) {
			t.Errorf("%q = %v, %v, want %q", text, res, err, want)
		}
	}
}

func TestToolSchemas(t *testing.T) {
	s := connect(t, &mcp.CommandTransport{Command: self(t, portEnv, "gosdk/toolschemas")}, nil)
	for tool, long := range map[string]bool{"simple-greeting": true, "manual-greeting": false, "customized-greeting-1": false, "customized-greeting-2": false} {
		if got := call(t, s, tool, map[string]any{"name": "Ada"}); got != `{"greeting":"Hi Ada"}` {
			t.Errorf("%s = %s", tool, got)
		}
		if got := call(t, s, tool, map[string]any{"name": "Bartholomew"}); strings.HasPrefix(got, "error: ") == long {
			t.Errorf("%s of a name with 11 characters = %s", tool, got)
		}
	}
	if got := call(t, s, "raw-greeting", map[string]any{"user": "Ada"}); got != "Hi Ada" {
		t.Errorf("raw-greeting = %s", got)
	}
}

func TestSSEOfGoSDK(t *testing.T) {
	host, port := freeAddr(t)
	start(t, self(t, portEnv, "gosdk/sse", "-host", host, "-port", port))
	for n := range 2 {
		name := fmt.Sprint(n + 1)
		var s *mcp.ClientSession
		soon(t, func() (err error) {
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			s, err = client.Connect(t.Context(), &mcp.SSEClientTransport{Endpoint: "http://" + host + ":" + port + "/greeter" + name}, nil)
			return err
		})
		if got := call(t, s, "greet"+name, map[string]any{"name": "Ada"}); got != "Hi Ada" {
			t.Errorf("greet%s = %q", name, got)
		}
		s.Close()
	}
}

// The original client calls our server, and ours calls the original server.
func TestHTTPOfGoSDK(t *testing.T) {
	ours := func(args ...string) *exec.Cmd { return self(t, portEnv, "gosdk/http", args...) }
	theirs := func(args ...string) *exec.Cmd { return exec.Command(original(t, "http"), args...) }
	for what, of := range map[string]struct {
		server, client func(args ...string) *exec.Cmd
	}{"our server": {ours, theirs}, "our client": {theirs, ours}} {
		t.Run(what, func(t *testing.T) {
			host, port := freeAddr(t)
			start(t, of.server("-host", host, "-port", port, "server"))
			var out []byte
			soon(t, func() (err error) {
				if out, err = of.client("-host", host, "-port", port, "client").CombinedOutput(); err != nil {
					err = fmt.Errorf("%w\n%s", err, out)
				}
				return err
			})
			for _, want := range []string{"cityTime: Get the current time", "The current time in New York City is 20", "The current time in San Francisco is", "The current time in Boston is"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("the client prints\n%s\nwant %q", out, want)
				}
			}
		})
	}
}

func freeAddr(t *testing.T) (host, port string) {
	t.Helper()
	addr, err := freeport.Addr()
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ = strings.Cut(addr, ":")
	return host, port
}
