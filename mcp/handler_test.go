package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Middleware sees each request, outermost first, and can answer itself.
func TestMiddlewareEverywhere(t *testing.T) {
	var seen chan string
	tag := func(name string) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, r *mcp.Request) (mcp.Result, error) {
				if r.Method == "tools/call" {
					seen <- name
					if string(r.Param("name")) == `"forbidden"` {
						return nil, mcp.Errorf(-31000, "not you")
					}
				}
				res, err := next.Handle(ctx, r)
				if tr, ok := res.(*mcp.ToolResult); ok {
					cp := *tr
					cp.Content = append(append([]mcp.Content(nil), tr.Content...), mcp.Text(name))
					res = &cp
				}
				return res, err
			})
		}
	}
	newServer := func() *mcp.Server {
		seen = make(chan string, 10)
		s := one(func(context.Context, struct{}) (string, error) { return "core", nil })
		s.Use(tag("outer"), tag("inner"))
		return s
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		res, err := s.CallTool(t.Context(), "ask", nil)
		if err != nil || res.Text() != "core\ninner\nouter" {
			t.Errorf("ask = %v, %v", res, err)
		}
		if a, b := <-seen, <-seen; a != "outer" || b != "inner" {
			t.Errorf("order %s, %s", a, b)
		}
		var rpc *mcp.Error
		if _, err := s.CallTool(t.Context(), "forbidden", nil); !errors.As(err, &rpc) || rpc.Code != -31000 {
			t.Errorf("forbidden = %v", err)
		}
	})
}

// CallFrom tells what is known of the caller.
func TestCallFromEverywhere(t *testing.T) {
	calls := make(chan *mcp.Call, 1)
	newServer := func() *mcp.Server {
		s := one(func(ctx context.Context, _ struct{}) (string, error) {
			calls <- mcp.CallFrom(ctx)
			return "", nil
		})
		s.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("Who") }
		return s
	}
	newClient := func() *mcp.Client {
		c := user()
		c.Title, c.Header = "User", http.Header{"Who": {"ada"}}
		return c
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		if _, err := s.Raw(t.Context(), "tools/call", map[string]any{"name": "ask", "_meta": map[string]any{"example.com/k": 7}}); err != nil {
			t.Fatal(err)
		}
		c := <-calls
		if c.Revision != s.Revision() || c.Client.Name != "user" || c.Client.Version != "1" || string(c.Meta["example.com/k"]) != "7" || c.Round != 0 {
			t.Errorf("call %+v", c)
		}
		if got := c.Capabilities.Has("elicitation"); got != asks(s.Revision()) {
			t.Errorf("capabilities %s", c.Capabilities)
		}
		if strings.Contains(t.Name(), "/http") != (c.Principal == "ada" && c.Header.Get("Who") == "ada") {
			t.Errorf("principal %q, header %v", c.Principal, c.Header)
		}
	})
}

// OnStart comes before the first request, is tried again if it failed, and
// OnShutdown after the last.
func TestStartAndShutdownHooks(t *testing.T) {
	var starts, stops atomic.Int64
	s := one(func(context.Context, struct{}) (string, error) { return fmt.Sprint(starts.Load()), nil })
	s.OnStart = func(context.Context) error {
		if starts.Add(1) == 1 {
			return errors.New("the database sleeps")
		}
		return nil
	}
	s.OnShutdown = func(context.Context) error { stops.Add(1); return errors.New("half open") }
	if _, err := s.Handle(t.Context(), &mcp.Request{Method: "tools/list"}); err == nil || !strings.Contains(err.Error(), "the database sleeps") {
		t.Errorf("the first request = %v", err)
	}
	for range 2 {
		if res, err := s.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"ask"}`)}); err != nil || res.(*mcp.ToolResult).Text() != "2" {
			t.Errorf("a later request = %v, %v", res, err)
		}
	}
	if err := s.Shutdown(t.Context()); err == nil || !strings.Contains(err.Error(), "half open") {
		t.Errorf("Shutdown = %v", err)
	}
	if err := s.Shutdown(t.Context()); err != nil || stops.Load() != 1 {
		t.Errorf("second Shutdown = %v, %d stops", err, stops.Load())
	}
}

// OnShutdown needs no OnStart: the program itself may have opened what OnShutdown closes.
func TestShutdownHookAlone(t *testing.T) {
	stops := 0
	s := one(func(context.Context, struct{}) (string, error) { return "", nil })
	s.OnShutdown = func(context.Context) error { stops++; return nil }
	for range 2 {
		if err := s.Shutdown(t.Context()); err != nil || stops != 1 {
			t.Errorf("Shutdown = %v, %d stops", err, stops)
		}
	}
}

// Faults of a configuration are reported when it is used.
func TestBadConfiguration(t *testing.T) {
	for name, s := range map[string]*mcp.Server{
		"Revisions": {Name: "s", Revisions: []mcp.Revision{"2023-01-01"}},
		"State":     {Name: "s", State: mcp.StateConfig{Keys: [][]byte{{1, 2}}}},
	} {
		if _, err := s.Handle(t.Context(), &mcp.Request{Method: "tools/list"}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := &mcp.Client{Revisions: []mcp.Revision{"2023-01-01"}}
	if _, err := c.Dial(t.Context(), "http://127.0.0.1:1/"); err == nil || !strings.Contains(err.Error(), "Revisions") {
		t.Errorf("Dial = %v", err)
	}
	for _, url := range []string{"", "127.0.0.1:80", "ftp://x/", "http://"} {
		if _, err := new(mcp.Client).Dial(t.Context(), url); err == nil || !strings.Contains(err.Error(), "use a URL") && url != "127.0.0.1:80" {
			t.Errorf("Dial(%q) = %v", url, err)
		}
	}
}

// A Handler that answers nonsense harms only its own call.
func TestHandlerAnswersNonsense(t *testing.T) {
	var panics atomic.Int64
	s := &mcp.Server{Name: "s", Version: "1", OnPanic: func(context.Context, any, []byte) { panics.Add(1) },
		Handler: mcp.HandlerFunc(func(_ context.Context, r *mcp.Request) (mcp.Result, error) {
			switch string(r.Param("name")) {
			case `"nil"`:
				return nil, nil
			case `"array"`:
				return mcp.RawResult(`[1]`), nil
			case `"empty"`:
				return mcp.RawResult(nil), nil
			case `"invalid"`:
				return &mcp.ToolResult{Structured: []byte(`{"a":`)}, nil
			}
			return &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "x", Version: "1"}}, nil
		})}
	for _, rev := range []mcp.Revision{mcp.V2024_11_05, mcp.V2026_07_28} {
		session := unchecked(t, s, &mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}})
		for _, name := range []string{"nil", "array"} {
			if _, err := session.CallTool(t.Context(), name, nil); !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeInternal}) {
				t.Errorf("%s on %s = %v, want %d", name, rev, err, jsonrpc.CodeInternal)
			}
		}
		if _, err := session.CallTool(t.Context(), "empty", nil); err != nil {
			t.Errorf("empty on %s = %v", rev, err)
		}
		if _, err := session.CallTool(t.Context(), "invalid", nil); err == nil {
			t.Errorf("invalid JSON on %s is no error", rev)
		}
		if _, err := session.CallTool(t.Context(), "empty", nil); err != nil {
			t.Errorf("after the nonsense on %s: %v", rev, err)
		}
	}
	if panics.Load() == 0 {
		t.Error("OnPanic was not told")
	}
}
