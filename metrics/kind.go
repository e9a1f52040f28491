package metrics

import (
	"context"
	"errors"

	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Kind says how a call ended, and for an error, which part of the system caused it.
type Kind uint8

const (
	OK             Kind = iota // a result, a question to the caller, or a task
	ToolError                  // the tool failed: a result with isError
	ProtocolError              // a JSON-RPC error of the server
	TransportError             // the server was not reached, its process ended, the connection was lost, or a shutdown cut off the call
	Refused                    // no permission: an [mcp.Denial] that is not about a rate limit
	Limited                    // over a rate limit
	TimedOut                   // it took too long
	Unlogged                   // the audit log could not be written, so the call was not sent
	Unsent                     // it waited for too long in this process, so it was not sent to its server
	Canceled                   // the caller canceled it, or has gone
	kinds
)

var kindNames = [kinds]string{"ok", "tool_error", "protocol", "transport", "policy", "limit", "deadline", "audit", "unsent", "canceled"}

// String returns the name of the kind, as in the label error_type: ok, tool_error, protocol, transport,
// policy, limit, deadline, audit, unsent or canceled.
func (k Kind) String() string { return kindNames[k] }

// ofCause are the kinds of requests by their ends, but for the Denial of a rate limit.
var ofCause = [...]Kind{
	outcome.Result: OK, outcome.Question: OK, outcome.Task: OK, outcome.Tool: ToolError, outcome.Denial: Refused,
	outcome.Deadline: TimedOut, outcome.Caller: Canceled, outcome.Lost: TransportError, outcome.Server: ProtocolError, outcome.Unlogged: Unlogged,
	outcome.Waited: Unsent,
}

// KindOf returns the kind of a call, given what the [mcp.Handler] returned for it and the context
// that the handler got:
//
//	a result with isError                                   tool
//	any other result, and mcp.ErrPending                    ok
//	*limit.Error                                            limit
//	any other mcp.Denial, such as of a policy               policy
//	*mcp.LimitError, context.DeadlineExceeded               deadline
//	any error or isError after the context was canceled
//	because an mcp.Server shut down                         transport
//	any error or isError after the context was canceled     canceled
//	errors whose method Unlogged returns true, as of a
//	call that package audit refuses                         audit
//	*mcp.ExitError, *mcp.HTTPError, net.Error, io.EOF,
//	mcp.ErrClosed, mcp.ErrSessionLost, and errors whose
//	method Unreached returns true                           transport
//	a call that has waited for its turn for too long        unsent
//	any other error                                         protocol
//
// The first line that fits decides.
func KindOf(ctx context.Context, res mcp.Result, err error) Kind {
	kind := ofCause[outcome.Of(ctx, res, err).Cause]
	if kind == Refused {
		var over *limit.Error
		if errors.As(err, &over) {
			return Limited
		}
	}
	return kind
}
