package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Kind says how a call ended, and for an error, which part of the system caused it.
type Kind uint8

const (
	OK             Kind = iota // a result, a question to the caller, or a task
	ToolError                  // the tool failed: a result with isError
	ProtocolError              // a JSON-RPC error of the server
	TransportError             // the server was not reached, its process ended, or the connection was lost
	Refused                    // no permission: an [mcp.Denial] that is not about a rate limit
	Limited                    // over a rate limit
	TimedOut                   // it took too long
	Canceled                   // the caller canceled it, or has gone
	kinds
)

var kindNames = [kinds]string{"ok", "tool_error", "protocol", "transport", "policy", "limit", "deadline", "canceled"}

// String returns the name of the kind, as in the label error_type: ok, tool_error, protocol, transport,
// policy, limit, deadline or canceled.
func (k Kind) String() string { return kindNames[k] }

// unreached is an error that says that a request did not reach its server, such as that of a
// gateway whose server is failing.
type unreached interface{ Unreached() bool }

// KindOf returns the kind of a call, given what the [mcp.Handler] returned for it and the context
// that the handler got:
//
//	a result with isError                                   tool
//	any other result, and mcp.ErrPending                    ok
//	*limit.Error                                            limit
//	any other mcp.Denial, such as of a policy               policy
//	*mcp.LimitError, context.DeadlineExceeded               deadline
//	any error or isError after the context was canceled     canceled
//	*mcp.ExitError, *mcp.HTTPError, net.Error, io.EOF,
//	mcp.ErrClosed, mcp.ErrSessionLost, and errors whose
//	method Unreached returns true                           transport
//	any other error                                         protocol
//
// The first line that fits decides.
func KindOf(ctx context.Context, res mcp.Result, err error) Kind {
	if err == nil && !isError(res) || errors.Is(err, mcp.ErrPending) {
		return OK
	}
	var over *limit.Error
	var denied mcp.Denial
	switch {
	case errors.As(err, &over):
		return Limited
	case errors.As(err, &denied):
		return Refused
	case tooLong(err), ctx.Err() != nil && tooLong(context.Cause(ctx)):
		return TimedOut
	case ctx.Err() != nil:
		return Canceled
	case err == nil:
		return ToolError
	case lost(err):
		return TransportError
	}
	return ProtocolError
}

// tooLong reports whether an error is about a time limit; an [*mcp.LimitError] is a
// context.DeadlineExceeded too.
func tooLong(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

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
	case mcp.RawResult:
		// Most results do not have the member, which this finds out faster than a scanner of JSON.
		if !bytes.Contains(r, []byte(`"isError"`)) {
			return false
		}
		v, _ := jsonx.Lookup(json.RawMessage(r), "isError")
		return string(v) == "true"
	}
	return false
}
