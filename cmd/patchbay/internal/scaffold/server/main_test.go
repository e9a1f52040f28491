package main

import (
	"context"
	"net"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func newClient() *mcp.Client { return &mcp.Client{Name: "test", Version: "1.0.0"} }

// The tool answers on every revision and wire, and names what is wrong with arguments.
func TestGreet(t *testing.T) {
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		for _, tt := range []struct {
			in   map[string]any
			want string
		}{
			{map[string]any{"name": "Ada"}, "Hello, Ada!"},
			{map[string]any{"name": "Ada", "formal": true}, "Good day, Ada."},
			{map[string]any{"name": 7}, "name: must be a string, got number"},
		} {
			if res, err := s.CallTool(t.Context(), "greet", tt.in); err != nil || res.Text() != tt.want {
				t.Errorf("greet %v = %v, %v, want %s", tt.in, res, err, tt.want)
			}
		}
	})
}

// The resource is read on every revision and wire.
func TestAbout(t *testing.T) {
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		res, err := s.ReadResource(t.Context(), "projectname://about")
		if err != nil || len(res.Contents) != 1 || res.Contents[0].Text == "" {
			t.Errorf("about = %v, %v", res, err)
		}
	})
}

// The server answers over HTTP until it is ended.
func TestHTTP(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ln, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- newEndpoint().Serve(ctx, ln) }()
	s, err := newClient().Dial(t.Context(), "http://"+ln.Addr().String()+"/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := mcp.CallAs[string](t.Context(), s, "greet", person{Name: "Ada"}); err != nil || got != "Hello, Ada!" {
		t.Errorf("greet = %q, %v", got, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
