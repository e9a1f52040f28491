package main

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// newServer makes a server to test the client with.
func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "echo", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "echo", Description: "Repeat a text"}, func(_ context.Context, in struct {
		Text string `json:"text" min:"1"`
	}) (string, error) {
		return in.Text, nil
	})
	return srv
}

// asServer makes the test program the server that TestRun starts.
const asServer = "PROJECT_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		if err := newServer().ServeStdio(context.Background()); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// The client lists and calls on every revision and wire.
func TestSession(t *testing.T) {
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		var out strings.Builder
		if err := list(t.Context(), s, &out); err != nil {
			t.Error(err)
		}
		if err := call(t.Context(), s, "echo", `{"text": "hello"}`, &out); err != nil {
			t.Error(err)
		}
		if got, want := out.String(), "echo: Repeat a text\nhello\n"; got != want {
			t.Errorf("output %q, want %q", got, want)
		}
		for args, want := range map[string]string{
			`{"text": ""}`: "must have at least 1 character",
			`{text}`:       "not JSON",
		} {
			if err := call(t.Context(), s, "echo", args, &out); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("echo %s: %v, want an error with %q", args, err, want)
			}
		}
	})
}

// The client connects to a URL and to a command.
func TestRun(t *testing.T) {
	web := httptest.NewServer(newServer())
	defer web.Close()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asServer, "1") // for the command
	for _, server := range []string{web.URL, program} {
		var out strings.Builder
		if err := run(t.Context(), "", "{}", []string{server}, &out); err != nil || out.String() != "echo: Repeat a text\n" {
			t.Errorf("list of %s: %q, %v", server, out.String(), err)
		}
	}
	for _, bad := range [][]string{nil, {web.URL, "more"}, {"no-such-program"}, {"http://127.0.0.1:1"}} {
		if err := run(t.Context(), "", "{}", bad, new(strings.Builder)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
