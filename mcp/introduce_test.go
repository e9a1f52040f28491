package mcp_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A Handler that answers lists and calls is a server: the rest is made of the Server's fields.
func TestHandlerOfListsAndCalls(t *testing.T) {
	handle := func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case "tools/list":
			return mcp.RawResult(`{"tools":[{"name":"hi","inputSchema":{"type":"object"}}]}`), nil
		case "tools/call":
			return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("hello")}}, nil
		case "resources/templates/list":
			return nil, errors.New("the templates are not ready")
		}
		return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "no method %q", req.Method)
	}
	server := func() *mcp.Server {
		return &mcp.Server{Name: "low", Title: "Low", Version: "1.2.3", Instructions: "Say hi.", Handler: mcp.HandlerFunc(handle)}
	}
	mcptest.Every(t, server, nothing, func(t *testing.T, s *mcp.Session) {
		info := s.Server()
		if info.Name != "low" || info.Version != "1.2.3" || info.Instructions != "Say hi." {
			t.Errorf("the server is %+v", info)
		}
		var caps []string
		for name := range info.Capabilities {
			caps = append(caps, name)
		}
		// A list that fails is there all the same.
		if slices.Sort(caps); !slices.Equal(caps, []string{"logging", "resources", "tools"}) {
			t.Errorf("the capabilities are %q", caps)
		}
		for tool, err := range s.Tools(t.Context()) {
			if err != nil || tool.Name != "hi" {
				t.Errorf("the tool is %v, %v", tool, err)
			}
		}
		if res, err := s.CallTool(t.Context(), "hi", nil); err != nil || res.Text() != "hello" {
			t.Errorf("hi = %v, %v", res, err)
		}
		var rpc *mcp.Error
		if _, err := s.GetPrompt(t.Context(), "p", nil); err == nil || errors.As(err, &rpc) && rpc.Code != jsonrpc.CodeMethodNotFound {
			t.Errorf("a prompt: %v", err)
		}
	})
}

// A description that a Handler gives of itself counts, and so does its error.
func TestHandlerAnswersDiscover(t *testing.T) {
	own := &mcp.Server{Name: "outer", Version: "1", Handler: mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != "server/discover" {
			return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "no method %q", req.Method)
		}
		return &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "inner", Version: "2"}}, nil
	})}
	bothEras(t, func(t *testing.T, rev mcp.Revision) {
		if info := mcptest.Connect(t, own, nothing(), rev).Server(); info.Name != "inner" || len(info.Capabilities) != 0 {
			t.Errorf("%s: the server is %+v", rev, info)
		}
	})
	bad := &mcp.Server{Name: "bad", Version: "1", Handler: mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "out of order")
	})}
	var rpc *mcp.Error
	if _, err := bad.Handle(t.Context(), &mcp.Request{Method: "server/discover"}); !errors.As(err, &rpc) || rpc.Message != "out of order" {
		t.Errorf("a handler that fails: %v", err)
	}
}
