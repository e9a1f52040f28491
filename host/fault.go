package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// What the errors of a call mean. Whether a call is made again depends on the kind, and on
// whether it may have run: one that may have is made again only if its tool is read-only or
// idempotent, and that its server says so is believed of servers that are trusted.
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
//	500, any other status                               permanent  perhaps
//	invalid params, no such tool or method, other 4xx   permanent  never
//	the server was replaced since it was decided on     outdated   never
//	the tool has changed since it was offered           outdated   never
//	any other error of the server                       permanent  perhaps
//	the answer does not fit the output schema           permanent  certainly
//
// What the server has asked something in, or made a task of, may have run too, whatever went
// wrong then: also when its question had no answer.
//
// A call that may have run, and must not run twice, has the outcome Unknown unless it is
// certain that it has run; Broken is the outcome of all others.
type fault struct {
	kind  faultKind
	ran   ran
	after time.Duration // before which it is of no use to try again, as the server said
	slow  bool          // it took the time of a time-out
	left  bool          // the context ended
	tries int           // how often the call was made
	asked string        // why a question of the server in it had no answer; empty: all had one
	err   error
}

type faultKind int

const (
	permanent faultKind = iota // the same call fails in the same way
	transient                  // it may succeed later
	fatal                      // no call of that server succeeds before a person has done something
	outdated                   // the same call is one of another server now, which is to be decided about anew
)

// ran tells whether a call has run.
type ran int

const (
	never ran = iota
	perhaps
	certainly
)

// errTotal is the cause of the end of a call that took too long in all.
var errTotal = errors.New("it took longer than a call may, in all")

// The pauses between attempts: each is between half of it and the whole.
const (
	firstPause = 500 * time.Millisecond
	longPause  = 8 * time.Second
	maxAfter   = 30 * time.Second // that a server may have a call wait before it is made again
)

// send makes the call, and again where that is safe and of use. The result is there beside a
// fault too if the server has given one that is not what it should be.
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
		p.tell(Retried, fmt.Sprintf("again in %v: %s", d.Round(10*time.Millisecond), clip(err.Error())))
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

// faultOf tells what an error of a call means. Answered: there is a result beside it.
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
	case errors.Is(err, mcp.ErrSessionLost): // what it needs may be gone: the model has to know
		f.ran = never
	case !sent && errors.As(err, &rpc) && !notThere(err): // Host.Middleware refuses it
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
	default: // the connection was lost, or what came cannot be read
		f.kind = transient
	}
	if f.ran == never && sent && hasBegun(err) {
		f.ran = perhaps
	}
	return f
}

// hasBegun tells whether the server had begun with a call before the error.
func hasBegun(err error) bool {
	var b mcp.BegunError
	return errors.As(err, &b) && b.Begun()
}

// without tells what it means that a call could not be sent.
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
	for _, one := range s.all() { // of a group, one that may come back is enough
		if one.state() != gateway.NeedsLogin {
			return transient
		}
	}
	return fatal
}

// unwritten tells whether a request failed in a way in which nothing need have been written.
func unwritten(err error) bool {
	var network *url.Error
	return errors.As(err, &network) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// ofHTTP is the fault of an answer that is no success.
func (f *fault) ofHTTP(e *mcp.HTTPError) {
	after, wanted := retryAfter(e.Header)
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

// retryAfter reads Retry-After (RFC 9110, 10.2.3): seconds, or a date.
func retryAfter(h http.Header) (time.Duration, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at)), true
	}
	return 0, false
}

// ofRPC is the fault of an error that the server has answered with.
func (f *fault) ofRPC(e *mcp.Error) {
	if raw, ok := jsonx.Lookup(e.Data, "retryAfter"); ok {
		if seconds, err := strconv.ParseFloat(string(raw), 64); err == nil && seconds >= 0 {
			f.kind, f.ran = transient, never
			f.after = time.Duration(min(seconds, 1e6) * float64(time.Second))
			return
		}
	}
	switch e.Code {
	case jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, mcp.CodeResourceNotFound, mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		f.ran = never
	}
	// That the request is none, or no JSON, is what the client makes of an answer that is none.
}

// outcome is what comes of a call with the fault. Safe: it does no harm if it runs twice.
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

// wasCancelled is the class of what was cancelled while it ran.
const wasCancelled = "it was cancelled"

// class tells what kind of fault it is, in no word of the server, which may have repeated what it
// was called with.
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

// classOf is the class of an error.
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
	return "the server could not be reached, or its answer not be read"
}

// words tell the model what went wrong, and what it can do.
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
		return "Outcome unknown: it may or may not have happened; do not repeat it without checking, for instance by a tool that only reads. What went wrong: " + what
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
		return fmt.Sprintf("It failed for now (tried %s), and may work later. Go on with something else, or try it once more at the end. What went wrong: %s", times(f.tries), what)
	case errors.Is(f.err, mcp.ErrSessionLost):
		return fmt.Sprintf("It has not run. The server %q has lost what it kept from earlier calls. Make those that this one depends on again, and then call it again.", clip(p.tool.Server))
	case f.ran == never:
		return "The server refused the call, and it has not run. The same call would be refused again, so change it or do without. What the server said: " + what
	}
	return "The server failed. The same call is likely to fail again, so change it or do without. What went wrong: " + what
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
