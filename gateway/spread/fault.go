package spread

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/retryafter"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// fault says what an error means for a request.
type fault int

const (
	answered fault = iota // the replica has answered, or the caller has left: the end
	notSent               // the replica has not run it: another one may
	lost                  // the replica may have run it
	refused               // the replica does not take it: another one may; its fault only if that one answers
)

func faultOf(ctx context.Context, err error) fault {
	var begun mcp.BegunError
	var op *net.OpError
	var he *mcp.HTTPError
	var limit *mcp.LimitError
	var gone *lostError
	var waited *wait.Error
	switch {
	case err == nil, errors.Is(err, mcp.ErrPending), ctx.Err() != nil:
		return answered
	case errors.As(err, &gone):
		return lost
	case errors.As(err, &waited) && waited.Late: // at another replica it would wait for as long again
		return answered
	case outcome.Unsent(err):
		return notSent
	case errors.As(err, &limit):
		return lost
	case outcome.Unusable(err):
		return lost
	case refuses(err):
		return refused
	case errors.As(err, &he):
		_, named := retryafter.Header(he.Header)
		switch {
		case he.Status == http.StatusServiceUnavailable && named:
			return notSent
		case he.Status >= http.StatusInternalServerError:
			return lost
		}
		return answered
	case errors.As(err, new(*mcp.Error)), errors.Is(err, mcp.ErrSessionLost):
		return answered
	case errors.As(err, &begun) && begun.Begun():
		return lost
	case errors.As(err, &op) && op.Op == "dial":
		return notSent
	case errors.As(err, new(*mcp.ExitError)), errors.As(err, new(net.Error)), errors.Is(err, mcp.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return lost
	}
	return answered
}

// refuses reports whether an error is the refusal of a replica that other replicas need not share: its credentials
// are wrong, or its path, or it has its own rate limit.
func refuses(err error) bool {
	var plain *mcp.HTTPError
	var worded interface{ HTTPStatus() int } // with a JSON-RPC error
	status := 0
	if errors.As(err, &plain) {
		status = plain.Status
	} else if errors.As(err, &worded) {
		status = worded.HTTPStatus()
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusTooManyRequests:
		return true
	}
	return false
}

// refusals are the replicas that have refused a request. That is their fault only if another one takes it: a caller
// whom all refuse has no permission.
type refusals []refusal

type refusal struct {
	r   *replica
	err error
}

func (all *refusals) add(r *replica, err error) { *all = append(*all, refusal{r, err}) }

// count counts them, because another replica has answered.
func (all refusals) count(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for _, one := range all {
		one.r.breaker.Fail(breaker.Refused, one.err.Error())
	}
}

// lostError is the error of a request whose replica was lost. It does not wrap the cause, because the
// gateway would take that for the loss of the whole connection.
type lostError struct {
	r     *replica
	tool  bool // the request has called a tool
	cause error
}

func (e *lostError) Error() string {
	unknown := ""
	if e.tool {
		unknown = "; the tool may or may not have run"
	}
	cause := e.cause.Error()
	if exit := (*mcp.ExitError)(nil); errors.As(e.cause, &exit) { // without the command, which callers must not see
		if cause = exit.State; exit.Stderr != "" {
			cause = fmt.Sprintf("%s; it last said: %q", exit.State, exit.Stderr)
		}
	}
	if outcome.Unusable(e.cause) {
		return fmt.Sprintf("%s gave no usable answer%s: %s", e.r.title(), unknown, cause)
	}
	return fmt.Sprintf("connection to %s lost%s: %s", e.r.title(), unknown, cause)
}

// Unwrap returns the error for callers.
func (e *lostError) Unwrap() error { return mcp.Errorf(jsonrpc.CodeInternal, "%s", e.Error()) }

// Unreached reports whether package metrics counts the error as one of the transport, not of the protocol.
func (e *lostError) Unreached() bool { return !outcome.Unusable(e.cause) }

// Begun reports whether the server had begun the call.
func (e *lostError) Begun() bool {
	var begun mcp.BegunError
	return errors.As(e.cause, &begun) && begun.Begun()
}

// worded returns an error of a replica for the gateway.
func (r *replica) worded(req *mcp.Request, f fault, err error) error {
	var limit *mcp.LimitError
	var he *mcp.HTTPError
	if f == answered || f == refused || errors.As(err, &limit) || errors.As(err, &he) {
		return err
	}
	var gone *lostError
	if errors.As(err, &gone) {
		err = gone.cause
	}
	if f == notSent {
		return unsent{mcp.Errorf(jsonrpc.CodeInternal, "%s cannot be reached: %v", r.title(), err)}
	}
	return &lostError{r, calls(req), err}
}
