package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/middleware"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// denial is an mcp.Denial.
type denial struct{}

func (denial) Error() string                                 { return "denied" }
func (denial) HTTPHeader(context.Context) (int, http.Header) { return http.StatusForbidden, nil }

// unlogged is the error of a call that the audit log refuses.
type unlogged struct{ error }

func (unlogged) Unlogged() bool  { return true }
func (e unlogged) Unwrap() error { return e.error }

// Each end has one cause, and the words of an access log and an audit log, and of counters.
func TestOf(t *testing.T) {
	live := t.Context()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancelLate()
	slow, cancelSlow := context.WithCancelCause(t.Context())
	cancelSlow(&mcp.LimitError{Limit: time.Second})
	down, shutDown := context.WithCancelCause(t.Context())
	shutDown(engine.ErrShutdown)
	failed, rpc := mcp.RawResult(`{"isError":true}`), mcp.Errorf(-32602, "no tool")
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		res   mcp.Result
		err   error
		cause outcome.Cause
		code  int
		log   middleware.Outcome
		kind  metrics.Kind
	}{
		{"a result", live, mcp.RawResult(`{}`), nil, outcome.Result, 0, middleware.OK, metrics.OK},
		{"a result after the end", gone, mcp.RawResult(`{}`), nil, outcome.Result, 0, middleware.OK, metrics.OK},
		{"a question", live, nil, fmt.Errorf("x: %w", mcp.ErrPending), outcome.Question, 0, middleware.Question, metrics.OK},
		{"a task", live, &mcp.CreateTaskResult{}, nil, outcome.Task, 0, middleware.Task, metrics.OK},
		{"isError", live, failed, nil, outcome.Tool, 0, middleware.ToolError, metrics.ToolError},
		{"isError of a function", live, &mcp.ToolResult{IsError: true}, nil, outcome.Tool, 0, middleware.ToolError, metrics.ToolError},
		{"isError in the content", live, mcp.RawResult(`{"content":[{"isError":true}]}`), nil, outcome.Result, 0, middleware.OK, metrics.OK},
		{"isError after the end", gone, failed, nil, outcome.Caller, 0, middleware.Canceled, metrics.Canceled},
		{"isError after a deadline", late, failed, nil, outcome.Deadline, 0, middleware.ToolError, metrics.TimedOut},
		{"a refusal", live, nil, denial{}, outcome.Denial, -32603, middleware.Denied, metrics.Refused},
		{"callTimeout", live, nil, &mcp.LimitError{Limit: time.Second}, outcome.Deadline, -32603, middleware.Failed, metrics.TimedOut},
		{"callTimeout of the context", slow, nil, rpc, outcome.Deadline, -32602, middleware.Canceled, metrics.TimedOut},
		{"a deadline of the network", live, nil, &url.Error{Op: "Post", Err: context.DeadlineExceeded}, outcome.Deadline, -32603, middleware.Failed, metrics.TimedOut},
		{"canceled", gone, nil, rpc, outcome.Caller, -32602, middleware.Canceled, metrics.Canceled},
		{"a shutdown", down, nil, rpc, outcome.Lost, -32602, middleware.Failed, metrics.TransportError},
		{"isError after a shutdown", down, failed, nil, outcome.Lost, 0, middleware.Failed, metrics.TransportError},
		{"cut off", live, nil, io.ErrUnexpectedEOF, outcome.Lost, -32603, middleware.Failed, metrics.TransportError},
		{"no line in the audit log", live, nil, unlogged{rpc}, outcome.Unlogged, -32602, middleware.Failed, metrics.Unlogged},
		{"a wait for too long", live, nil, &wait.Error{Err: rpc, Late: true}, outcome.Waited, -32602, middleware.Failed, metrics.Unsent},
		{"a connection lost in a wait", live, nil, &wait.Error{Err: mcp.ErrClosed}, outcome.Lost, -32603, middleware.Failed, metrics.TransportError},
		{"a JSON-RPC error", live, nil, rpc, outcome.Server, -32602, middleware.Failed, metrics.ProtocolError},
		{"another error", live, nil, errors.New("x"), outcome.Server, -32603, middleware.Failed, metrics.ProtocolError},
	} {
		e := outcome.Of(tt.ctx, tt.res, tt.err)
		if e.Cause != tt.cause || e.Code != tt.code || e.Failed() != (tt.cause > outcome.Task) {
			t.Errorf("%s: %+v, want the cause %d and the code %d", tt.name, e, tt.cause, tt.code)
		}
		var got middleware.Record
		h := middleware.Observe(func(_ context.Context, r middleware.Record) { got = r })(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return tt.res, tt.err }))
		h.Handle(tt.ctx, &mcp.Request{Method: "tools/call"})
		if got.Outcome != tt.log {
			t.Errorf("%s: a log has %q, want %q", tt.name, got.Outcome, tt.log)
		}
		if kind := metrics.KindOf(tt.ctx, tt.res, tt.err); kind != tt.kind {
			t.Errorf("%s: the kind is %v, want %v", tt.name, kind, tt.kind)
		}
	}
}
