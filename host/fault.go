package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/retryafter"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A fault classifies the error of a call. The kind, and whether the call may have run, decide
// whether it is retried. A call that may have run is retried only if a trusted server declares its
// tool read-only or idempotent.
//
//	what went wrong                                   kind       it has run
//	the server needs a login, or refuses us (401, 403)  fatal      never
//	the server was removed, the host is closed          fatal      never
//	the server is starting, failing or crashing         transient  never
//	the connection was over before, or never came       transient  never
//	429, 503 with Retry-After, an error with retryAfter transient  never
//	the connection was lost, the process ended          transient  perhaps
//	the answer cannot be read                           transient  perhaps
//	502, 503, 504                                       transient  perhaps
//	no answer and no progress in time                   transient  perhaps (made again once)
//	500, 408, any other status                          permanent  perhaps
//	invalid params, no such tool or method, other 4xx   permanent  never
//	the server was replaced since it was decided on     outdated   never
//	the tool has changed since it was offered           outdated   never
//	the server has ended the session                    permanent  never
//	Host.Middleware refused it, without retryAfter      permanent  never
//	any other error of the server                       permanent  perhaps
//	the answer does not fit the output schema           permanent  certainly
//
// A call in which the server has asked a question, or made a task, may have run even where the
// table says never.
//
// If the call was cancelled, its outcome is Cancelled; if it failed because a question from the
// server had no answer, Failed. Otherwise a call that perhaps ran and must not run twice is
// Unknown, and any other is Broken.
type fault struct {
	kind  faultKind
	ran   ran
	after time.Duration // the least pause before a retry, as the server asked
	slow  bool          // the call timed out
	left  bool          // the caller's context has ended
	tries int           // number of attempts
	asked string        // why a question from the server during the call had no answer; empty: all were answered
	err   error
}

type faultKind int

const (
	permanent faultKind = iota // the same call fails again
	transient                  // it may succeed later
	fatal                      // no call to that server succeeds until a person has acted
	outdated                   // the decision about the call does not apply any more
)

// ran says whether a call has run.
type ran int

const (
	never ran = iota
	perhaps
	certainly
)

// errTotal is the cause when a call exceeds Limits.CallTotal.
var errTotal = errors.New("it took longer than the total limit of a call")

// Bounds of the pause between attempts. The actual pause is random, from half of the current bound
// to all of it.
const (
	firstPause = 500 * time.Millisecond
	longPause  = 8 * time.Second
	maxAfter   = 30 * time.Second // the longest pause that a server can ask for before a retry
)

// send makes the call, and retries it where that is safe and useful. With a fault, the result is
// not nil if the server gave one that does not fit its output schema.
func (p *pending) send(outer context.Context) (*mcp.ToolResult, *fault) {
	ctx := outer
	if total := or(p.c.h.Limits.CallTotal, time.Hour); total > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, total, errTotal)
		defer cancel()
	}
	retries, pause := or(p.c.h.Limits.Retries, 4), firstPause
	for tries := 1; ; tries++ {
		res, sent, err := p.attempt(ctx)
		if err == nil {
			return res, nil
		}
		f := p.server.faultOf(ctx, sent, res != nil, err)
		f.tries, f.left = tries, outer.Err() != nil
		again := f.kind == transient && (f.ran == never || p.safe) && f.after <= maxAfter
		if !again || tries > retries || f.slow && tries > 1 || ctx.Err() != nil {
			return res, f
		}
		d := max(pause/2+rand.N(pause/2), f.after)
		pause = min(2*pause, longPause)
		p.tell(Retried, fmt.Sprintf("retrying in %v: %s", d.Round(10*time.Millisecond), clip(err.Error())))
		t := time.NewTimer(d)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			f.left = outer.Err() != nil
			return res, f
		}
	}
}

// faultOf classifies an error of a call. The argument answered reports whether there is a result
// beside the error.
func (s *server) faultOf(ctx context.Context, sent, answered bool, err error) *fault {
	f := &fault{err: err}
	if sent {
		f.ran = perhaps
	}
	var login *gateway.LoginError
	var rpc *mcp.Error
	var he *mcp.HTTPError
	switch {
	case answered:
		f.ran = certainly
	case errors.As(err, &login):
		f.kind, f.ran = fatal, never
	case ctx.Err() != nil:
		if cause := context.Cause(ctx); errors.Is(cause, errTotal) {
			f.err = cause
		}
	case errors.Is(err, errChanged):
		f.kind = outdated
	case errors.Is(err, mcp.ErrSessionLost): // state that it needs may be gone: the model must know
		f.ran = never
	case !sent && errors.As(err, &rpc) && !notThere(err): // Host.Middleware refused it
		f.ran = never
		f.ofRPC(rpc)
		f.ran = never
	case !sent:
		f.kind = s.without()
	case errors.As(err, &he):
		f.ofHTTP(he)
	case errors.As(err, &rpc) && refusal(ctx) != "":
		f.asked = refusal(ctx)
	case errors.As(err, &rpc):
		f.ofRPC(rpc)
	case errors.Is(err, context.DeadlineExceeded):
		f.kind, f.slow = transient, true
	default: // the connection was lost, or the answer cannot be read
		f.kind = transient
	}
	if f.ran == never && sent && hasBegun(err) {
		f.ran = perhaps
	}
	return f
}

// hasBegun reports whether the server had begun the call before the error.
func hasBegun(err error) bool {
	var b mcp.BegunError
	return errors.As(err, &b) && b.Begun()
}

// without returns the kind of the fault when a call could not be sent.
func (s *server) without() faultKind {
	s.h.mu.Lock()
	now, closed := s.h.find(s.Name), s.h.closed
	s.h.mu.Unlock()
	switch {
	case closed || now == nil:
		return fatal
	case now != s:
		return outdated
	}
	for _, one := range s.all() { // one member of a group that may come back is enough
		if one.state() != gateway.NeedsLogin {
			return transient
		}
	}
	return fatal
}

// unwritten reports whether a request may have failed before any of it was written.
func unwritten(err error) bool {
	var network *url.Error
	return errors.As(err, &network) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// ofHTTP classifies an HTTP response with an error status.
func (f *fault) ofHTTP(e *mcp.HTTPError) {
	after, wanted := retryafter.Header(e.Header)
	switch {
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		f.kind, f.ran = fatal, never
	case e.Status == http.StatusTooManyRequests, e.Status == http.StatusServiceUnavailable && wanted:
		f.kind, f.ran, f.after = transient, never, after
	case e.Status == http.StatusBadGateway, e.Status == http.StatusServiceUnavailable, e.Status == http.StatusGatewayTimeout:
		f.kind = transient
	case 400 <= e.Status && e.Status < 500 && e.Status != http.StatusRequestTimeout:
		f.ran = never
	}
}

// ofRPC classifies a JSON-RPC error from the server.
func (f *fault) ofRPC(e *mcp.Error) {
	if after, ok := retryafter.Data(e.Data); ok {
		f.kind, f.ran, f.after = transient, never, after
		return
	}
	switch e.Code {
	case jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, mcp.CodeResourceNotFound, mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		f.ran = never
	}
	// CodeParse and CodeInvalidRequest are not listed, because a client also uses them for a
	// response that it cannot read.
}

// outcome returns the outcome of the call. If safe is set, running it twice does no harm.
func (f *fault) outcome(safe bool) Outcome {
	switch {
	case f.left:
		return Cancelled
	case f.asked != "":
		return Failed
	case f.ran == perhaps && !safe:
		return Unknown
	}
	return Broken
}

// wasCancelled is the class of a call that was cancelled while it ran.
const wasCancelled = "it was cancelled"

// class describes the kind of fault for the audit log. It never quotes the server, which may repeat
// the arguments of the call.
func (f *fault) class() string {
	switch {
	case f.left:
		return wasCancelled
	case f.asked != "":
		return "a question of the server had no answer"
	case f.ran == certainly:
		return "the answer does not fit the output schema"
	case f.slow:
		return "no answer and no progress in time"
	}
	return classOf(f.err)
}

// classOf describes the kind of an error, as class does.
func classOf(err error) string {
	var rpc *mcp.Error
	var he *mcp.HTTPError
	switch {
	case errors.Is(err, errTotal):
		return errTotal.Error()
	case errors.Is(err, errGone):
		return errGone.Error()
	case errors.Is(err, errChanged):
		return errChanged.Error()
	case errors.Is(err, mcp.ErrSessionLost):
		return "the server has ended the session"
	case errors.As(err, &he):
		return fmt.Sprintf("the server answered with status %d", he.Status)
	case errors.As(err, &rpc):
		return fmt.Sprintf("the server answered with error %d", rpc.Code)
	}
	return "the server could not be reached, or its answer could not be read"
}

// words tells the model what went wrong and what it can do.
func (f *fault) words(p *pending) string {
	what := clip(f.err.Error())
	switch {
	case f.left && f.ran == never:
		return cancelledBefore
	case f.left && p.safe:
		return "The person cancelled this while it ran."
	case f.left:
		return "The person cancelled this while it ran. Outcome unknown: it may or may not have happened; do not repeat it without checking."
	case f.asked != "":
		return "The server asked something for this call and got no answer, and then the call failed; it may have been done in part. Why there was no answer: " + clip(f.asked)
	case f.ran == perhaps && !p.safe:
		return "Outcome unknown: it may or may not have happened; do not repeat it without checking, for instance by a tool that only reads. Cause: " + what
	case f.ran == certainly && !p.safe:
		return "It has run, so do not repeat it without checking, but its answer is not what it should be: " + what
	case f.ran == certainly:
		return "It has run, but its answer is not what it should be, which is a mistake of the server: " + what
	case f.kind == fatal:
		return fmt.Sprintf("It has not run. The server %q cannot be used before a person has done something about it, so do not call its tools again; go on without them, or say what is missing. %s", clip(p.tool.Server), what)
	case errors.Is(f.err, errChanged):
		return fmt.Sprintf("It has not run: the definition of the tool %q has changed. Read it again, and call the tool again if that is still wanted.", clip(p.tool.Tool.Name))
	case f.kind == outdated:
		return fmt.Sprintf("It has not run: the server %q was replaced before it could be called. Call it again if that is still wanted.", clip(p.tool.Server))
	case f.kind == transient:
		return fmt.Sprintf("It failed for now (tried %s), and may work later. Go on with something else, or try it once more at the end. Cause: %s", times(f.tries), what)
	case errors.Is(f.err, mcp.ErrSessionLost):
		return fmt.Sprintf("It has not run. The server %q has lost the state of earlier calls. Make those that this one depends on again, and then call it again.", clip(p.tool.Server))
	case f.ran == never:
		return "The server refused the call, and it has not run. The same call would be refused again, so change it or do without. The server's answer: " + what
	}
	return "The server failed. The same call is likely to fail again, so change it or do without. Cause: " + what
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
