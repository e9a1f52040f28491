package middleware_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/middleware"
)

// long is the size of a result: as many bytes of text.
type long struct {
	Size int `json:"size"`
}

func newLong() *mcp.Server {
	s := &mcp.Server{Name: "s", Version: "1", Instructions: strings.Repeat("x", 5000)}
	text := func(_ context.Context, in long) (string, error) { return strings.Repeat("x", in.Size), nil }
	mcp.AddTool(s, mcp.Tool{Name: "text", Description: strings.Repeat("x", 5000)}, text)
	mcp.AddTool(s, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, text)
	for name, size := range map[string]int{"short": 1000, "long": 3000} {
		mcp.AddPrompt(s, mcp.Prompt{Name: name}, func(ctx context.Context, _ struct{}) (string, error) { return text(ctx, long{size}) })
	}
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{URITemplate: "x://{size}", Name: "x"}, text)
	return s
}

// Results up to the limit pass, and longer ones are errors that name it: at the server and at the
// client.
func TestMaxResult(t *testing.T) {
	const limit = 2000
	check := func(t *testing.T, s *mcp.Session) {
		for tool, err := range s.Tools(t.Context()) { // lists pass
			if err != nil {
				t.Errorf("tools: %v, %v", tool, err)
			}
		}
		for _, tool := range []string{"text", "work"} {
			if res, err := s.CallTool(t.Context(), tool, long{1000}); err != nil || len(res.Text()) != 1000 {
				t.Errorf("%s: %v, %v, want 1000 bytes", tool, res, err)
			}
			res, err := s.CallTool(t.Context(), tool, long{3000})
			switch {
			case tool == "work" && !s.Revision().Sessions(): // the result of a task
				if !isLong(err) || !strings.Contains(err.Error(), "; call its tool again and ask for less") {
					t.Errorf("%s: %v, %v, want an error that names the limit and the next step", tool, res, err)
				}
			case err != nil || !res.IsError || !strings.HasPrefix(res.Text(), `the result of "`+tool+`" has 30`) || !strings.Contains(res.Text(), "more than the limit of 2000; ask for less"):
				t.Errorf("%s: %+v, %v, want a tool error that names the limit", tool, res, err)
			}
		}
		if _, err := s.GetPrompt(t.Context(), "short", nil); err != nil {
			t.Error(err)
		}
		if _, err := s.GetPrompt(t.Context(), "long", nil); !isLong(err) {
			t.Errorf("prompt: %v, want an error that names the limit", err)
		}
		if _, err := s.ReadResource(t.Context(), "x://1000"); err != nil {
			t.Error(err)
		}
		if _, err := s.ReadResource(t.Context(), "x://3000"); !isLong(err) {
			t.Errorf("resource: %v, want an error that names the limit", err)
		}
	}
	t.Run("server", func(t *testing.T) {
		mcptest.Every(t, func() *mcp.Server {
			s := newLong()
			s.Use(middleware.MaxResult(limit))
			return s
		}, newClient, check)
	})
	t.Run("client", func(t *testing.T) {
		mcptest.Every(t, newLong, func() *mcp.Client {
			c := newClient()
			c.Use(middleware.MaxResult(limit))
			return c
		}, check)
	})
}

func isLong(err error) bool {
	var rpc *mcp.Error
	return errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeInternal && strings.Contains(rpc.Message, "more than the limit of 2000")
}
