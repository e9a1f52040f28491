package mcp_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// hasBegun reports whether the error of a call says that its server had begun with it.
func hasBegun(err error) bool {
	var b interface{ Begun() bool }
	return errors.As(err, &b) && b.Begun()
}

// The error of a call says whether the server had begun it, for every error and revision: it has if
// it asked a question or made a task of the call.
func TestBegun(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		for _, tt := range []struct {
			name         string
			asks, answer bool // the server asks, and has an answer
			task         bool // the server makes a task of the call
		}{
			{name: "at once"},
			{name: "after a question", asks: true, answer: true},
			{name: "after a question without an answer", asks: true},
			{name: "in a task", task: true},
			{name: "in a task after a question", asks: true, answer: true, task: true},
			{name: "in a task after a question without an answer", asks: true, task: true},
		} {
			if tt.task && rev < mcp.V2025_11_25 {
				continue
			}
			t.Run(string(rev)+" "+tt.name, func(t *testing.T) {
				s := &mcp.Server{Name: "s", Version: "1"}
				tool := mcp.Tool{Name: "refuses"}
				if tt.task {
					tool.Execution.TaskSupport = mcp.TaskRequired
				}
				mcp.AddTool(s, tool, func(ctx context.Context, _ struct{}) (string, error) {
					if tt.asks {
						mcp.Roots(ctx)
					}
					return "", mcp.Errorf(jsonrpc.CodeInvalidParams, "no")
				})
				c := nothing()
				c.Roots = func(context.Context) ([]mcp.Root, error) {
					if !tt.answer {
						return nil, mcp.Errorf(jsonrpc.CodeInternal, "not now")
					}
					return nil, nil
				}
				_, err := mcptest.Connect(t, s, c, rev).CallTool(t.Context(), "refuses", nil)
				var rpc *mcp.Error
				if !errors.As(err, &rpc) || hasBegun(err) != (tt.asks || tt.task) {
					t.Errorf("CallTool = %v, begun %v", err, hasBegun(err))
				}
			})
		}
	}
}

// A call with invalid messages after a question, or after its task, has begun too.
func TestBegunWithNonsense(t *testing.T) {
	const more = `"inputRequests":{"a":{"method":"roots/list"}}`
	for _, tt := range []struct {
		name, result string
		begun        bool
	}{
		{"questions without end", `"resultType":"input_required",` + more, true},
		{"a question without a method", `"resultType":"input_required","inputRequests":{"a":{}}`, true},
		{"a task without a name", `"resultType":"task"`, true},
		{"something unknown", `"resultType":"later"`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := nothing()
			c.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
			s := foreign(t, c, func(_ *jsonrpc.Message, id string, send func(string, ...any)) {
				send(`{"jsonrpc":"2.0","id":%s,"result":{%s}}`, id, tt.result)
			})
			if _, err := s.CallTool(t.Context(), "x", nil); err == nil || hasBegun(err) != tt.begun {
				t.Errorf("CallTool = %v, begun %v", err, hasBegun(err))
			}
		})
	}
}

// On one wire an older server does not name the call it asks for: every call in progress may have
// begun, and none that came later.
func TestBegunByWhom(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	s := &mcp.Server{Name: "s", Version: "1"}
	refuse := mcp.Errorf(jsonrpc.CodeInvalidParams, "no")
	mcp.AddTool(s, mcp.Tool{Name: "together"}, func(ctx context.Context, _ struct{}) (string, error) {
		both.Done()
		both.Wait()
		mcp.Roots(ctx)
		return "", refuse
	})
	mcp.AddTool(s, mcp.Tool{Name: "alone"}, func(context.Context, struct{}) (string, error) { return "", refuse })
	c := nothing()
	c.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
	session := mcptest.Connect(t, s, c, mcp.V2025_06_18)
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if _, err := session.CallTool(t.Context(), "together", nil); !hasBegun(err) {
				t.Errorf("one of two calls = %v, which has not begun", err)
			}
		})
	}
	calls.Wait()
	if _, err := session.CallTool(t.Context(), "alone", nil); err == nil || hasBegun(err) {
		t.Errorf("a call later = %v, begun %v", err, hasBegun(err))
	}
}
