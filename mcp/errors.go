package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Error is a JSON-RPC error. A [Handler] returns one to answer with it, and a [Session] returns one
// when the server answered with it. errors.Is compares codes.
type Error = jsonrpc.Error

// Error codes of MCP. Package jsonrpc has those of JSON-RPC, such as jsonrpc.CodeInvalidParams.
const (
	// CodeResourceNotFound is written as -32602 toward 2026-07-28 peers.
	CodeResourceNotFound = -32002 // 2024-11-05 to 2025-11-25, server/resources

	CodeHeaderMismatch     = -32020 // 2026-07-28, HeaderMismatch
	CodeMissingCapability  = -32021 // 2026-07-28, MissingRequiredClientCapability
	CodeUnsupportedVersion = -32022 // 2026-07-28, UnsupportedProtocolVersion
)

// Errorf makes an [*Error] with a code and a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ResourceNotFound is the error for a resource that does not exist, in the form
// of the caller's revision: -32002 up to 2025-11-25, -32602 since.
func ResourceNotFound(uri string) *Error {
	data, _ := json.Marshal(map[string]string{"uri": uri})
	return &Error{Code: CodeResourceNotFound, Message: fmt.Sprintf("no resource %q", text.Short(uri)), Data: data}
}

// Denial is an error that a handler returns to choose the HTTP status and headers of the response,
// such as 429 with Retry-After or 401 with a challenge. On other transports, and in an event
// stream, there is no such response. The caller then gets the [*jsonrpc.Error] that the Denial is
// or wraps, or else a JSON-RPC error with its text.
type Denial interface {
	error

	// HTTPHeader returns the status and the headers of the answer to the call of ctx. With status 0
	// the response is that of an error that is not a Denial.
	HTTPHeader(ctx context.Context) (status int, h http.Header)
}

var _ engine.Denial = Denial(nil)

// BegunError is the error of a call that the server had begun: the server had asked a question in
// the call, or made a task of it. The call may therefore have had an effect. Find it with
// [errors.As].
type BegunError interface {
	error

	// Begun returns true if the server had begun.
	Begun() bool
}

var (
	// ErrDeclined says that the user refused a question.
	ErrDeclined = bridge.ErrDeclined
	// ErrDismissed says that the user closed a question without an answer.
	ErrDismissed = bridge.ErrDismissed
	// ErrNotSupported says that the other side did not declare what a call or question needs. If a
	// handler returns it, a caller that speaks 2026-07-28 gets -32021.
	ErrNotSupported = fmt.Errorf("mcp: not supported by the other side: %w", errors.ErrUnsupported)
	// ErrNoCall says that a function such as [Elicit] was called with a context
	// that does not belong to a call.
	ErrNoCall = bridge.ErrNoCall
	// ErrPending says that a question to a caller that speaks 2026-07-28 has no answer yet. The
	// handler returns it, the caller gets the question as the result, and the handler runs again
	// when the caller calls again with the answer. For middleware, ErrPending is not a failure of
	// the call.
	ErrPending = engine.ErrSuspended
	// ErrSessionLost says that a legacy server over HTTP has ended the session, and with it any
	// state it kept for this client. The [Session] goes on with a new one. The request has not run
	// and was not repeated in the new session, because it may depend on the lost state.
	ErrSessionLost = errors.New("mcp: the server has ended the session")
	// ErrClosed says that the session or server was closed on this side.
	ErrClosed = bridge.ErrClosed
)

// ToolError is a tool's own failure, a result with isError, as [CallAs] returns it.
type ToolError struct {
	Tool   string
	Result *ToolResult
}

// Error returns the text of the result.
func (e *ToolError) Error() string {
	return fmt.Sprintf("tool %q: %s", e.Tool, text.Short(e.Result.Text()))
}
