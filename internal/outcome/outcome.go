// Package outcome says how a request ended. The access log, the audit log, counters and spans have
// words of their own for it; each maps them from the same [End], so that they agree about a call.
package outcome

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Cause is why a request ended as it did.
type Cause uint8

const (
	Result   Cause = iota // it has a result
	Question              // the result asks the caller: [mcp.ErrPending]
	Task                  // the call goes on as a task
	Tool                  // the tool failed: a result with isError
	Denial                // an [mcp.Denial]: no permission, or over a rate limit
	Deadline              // it took too long: an error about a time limit, or the context has such a cause
	Caller                // it failed after its context had ended in another way
	Lost                  // it failed between this process and the server, or this process shut down
	Unlogged              // its line of the audit log could not be written, so it was not sent
	Waited                // it waited for too long in this process, so it was not sent
	Server                // any other error
)

// End describes how a request ended.
type End struct {
	Cause Cause
	Err   bool  // it ended with an error, not a result
	Code  int   // of a JSON-RPC error; an error without a code counts as jsonrpc.CodeInternal
	Ctx   error // of the context of the request: nil, context.Canceled or context.DeadlineExceeded
}

// Failed reports whether the request has neither a result that the caller wants nor a question.
func (e End) Failed() bool { return e.Cause > Task }

// Of returns how a request ended, given what the [mcp.Handler] returned and the context that it got.
func Of(ctx context.Context, res mcp.Result, err error) End {
	e := End{Ctx: ctx.Err()}
	if err == nil && !isError(res) {
		if _, task := res.(*mcp.CreateTaskResult); task {
			e.Cause = Task
		}
		return e
	}
	if errors.Is(err, mcp.ErrPending) {
		e.Cause = Question
		return e
	}
	if err != nil {
		e.Err, e.Code = true, jsonrpc.CodeInternal
		var rpc *mcp.Error
		if errors.As(err, &rpc) {
			e.Code = rpc.Code
		}
	}
	var denied mcp.Denial
	var unaudited unlogged
	var waited *wait.Error
	switch {
	case errors.As(err, &denied):
		e.Cause = Denial
	case tooLong(err), e.Ctx != nil && tooLong(context.Cause(ctx)):
		e.Cause = Deadline
	case ShutDown(ctx):
		e.Cause = Lost
	case e.Ctx != nil:
		e.Cause = Caller
	case err == nil:
		e.Cause = Tool
	case errors.As(err, &unaudited) && unaudited.Unlogged():
		e.Cause = Unlogged
	case lost(err):
		e.Cause = Lost
	case errors.As(err, &waited):
		e.Cause = Waited
	default:
		e.Cause = Server
	}
	return e
}

// tooLong reports whether an error is about a time limit; an [*mcp.LimitError] is a
// context.DeadlineExceeded too.
func tooLong(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// ShutDown reports whether a context has ended because this process shuts down.
func ShutDown(ctx context.Context) bool {
	var down interface{ ShutDown() bool }
	return ctx.Err() != nil && errors.As(context.Cause(ctx), &down) && down.ShutDown()
}

// unreached is an error that says that a request did not reach its server, such as that of a
// gateway whose server is failing.
type unreached interface{ Unreached() bool }

// unlogged is the error of a call that was not sent because the audit log cannot be written.
type unlogged interface{ Unlogged() bool }

// Unsent reports whether err says that a request was not sent to its server.
func Unsent(err error) bool {
	var unsent interface{ Unsent() bool }
	return errors.As(err, &unsent) && unsent.Unsent()
}

// Unusable reports whether err says that a server has answered with something that is not an answer to the request.
func Unusable(err error) bool {
	var answer interface{ Unusable() bool }
	return errors.As(err, &answer) && answer.Unusable()
}

// lost reports whether a request failed between this process and the server.
func lost(err error) bool {
	var exit *mcp.ExitError
	var status *mcp.HTTPError
	var network net.Error
	var away unreached
	switch {
	case errors.As(err, &exit), errors.As(err, &status), errors.As(err, &network):
		return true
	case errors.As(err, &away) && away.Unreached():
		return true
	}
	for _, known := range []error{mcp.ErrClosed, mcp.ErrSessionLost, io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// isError reports whether the result of a tool says that the tool failed.
func isError(res mcp.Result) bool {
	switch r := res.(type) {
	case *mcp.ToolResult:
		return r.IsError
	case mcp.RawResult: // of a server behind a session
		// Most results do not have the member, which this finds out faster than a scanner of JSON, or than a search for
		// a quote.
		if !bytes.Contains(r, []byte(`Error"`)) {
			return false
		}
		v, _ := jsonx.Lookup(json.RawMessage(r), "isError")
		return string(v) == "true"
	}
	return false
}
