package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// A Wire is our end, as a client, of a connection to one server, whatever
// transport carries it. It knows messages, not their meaning: who speaks which
// revision is the business of its user. Its methods are safe for several
// goroutines.
type Wire interface {
	// Call sends a request under an id of its own and waits for the answer. It
	// returns the raw result; a *jsonrpc.Error or *HTTPError if the server answered
	// with one; else a local failure. When ctx ends first it tells the server so,
	// without waiting for that to be written, and returns the cause of ctx. It keeps
	// nothing of out, and nobody else has the result.
	Call(ctx context.Context, out *Outgoing) (json.RawMessage, error)

	// Notify sends a notification.
	Notify(ctx context.Context, method string, params json.RawMessage) error

	// Negotiated tells the wire which revision is spoken from now on.
	Negotiated(t *revision.Table)

	// Done is closed when the connection is over; Err then says why.
	Done() <-chan struct{}
	Err() error

	// Close ends the connection, bounded in time. Pending calls fail.
	Close() error
}

// Outgoing is one request of ours.
type Outgoing struct {
	Method string
	Params json.RawMessage

	// Token is the progress token that Params carry, as raw JSON; nil for none. A
	// wire without a stream per request finds the call by it.
	Token json.RawMessage

	// Logs says that the request asks for log messages, which nothing ties to it on a wire
	// without a stream per request.
	Logs bool

	// Header is sent with the request on HTTP, beside what the transport adds.
	Header http.Header

	// Inbox gets what belongs to the call: Note is called in order and before Call
	// returns, on its goroutine; Question for what a legacy server asks on a stream that is
	// of the call alone. Nil: the inbox of the wire gets it.
	Inbox Inbox
}

// Inbox gets what a server sends beside its answers.
type Inbox interface {
	// Note is called with each notification, in order. It must not block.
	Note(method string, params json.RawMessage)

	// Question answers a request of a legacy server, on a goroutine of its own. The inbox
	// of a wire gets the questions that name no call.
	Question(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// LateInbox is an Inbox that may want the answer to a call that was given up. Where giving
// up ends the way for answers, as over HTTP, none comes.
type LateInbox interface {
	Inbox

	// GivenUp is called when Call gives up a request that was or may yet be sent. What it
	// returns is called at most once, with the result if that comes all the same, nil if
	// there is none. It must not block; nil: nobody wants to know.
	GivenUp() (late func(result json.RawMessage))
}

// Only returns the call in flight that a message can belong to which does not say so: the only
// one that is likely, or else the only one. It is nil if there are several: to doubt is better
// than to tell one caller what is another's.
func Only[T any](calls iter.Seq[*T], likely func(*T) bool) *T {
	var only, best *T
	n, likelies := 0, 0
	for c := range calls {
		only = c
		n++
		if likely(c) {
			best = c
			likelies++
		}
	}
	switch {
	case likelies == 1:
		return best
	case n == 1:
		return only
	}
	return nil
}

// HTTPError is an HTTP answer that is no success. RPC holds the JSON-RPC error of
// its body, if there was one.
type HTTPError struct {
	Status int
	Header http.Header
	Body   string // the beginning of the body, for people
	RPC    *jsonrpc.Error
}

func (e *HTTPError) Error() string {
	if e.RPC != nil {
		return fmt.Sprintf("HTTP %d %s: %v", e.Status, http.StatusText(e.Status), e.RPC)
	}
	if e.Body != "" {
		return fmt.Sprintf("HTTP %d %s: %q", e.Status, http.StatusText(e.Status), e.Body)
	}
	return fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
}

// Unwrap returns the JSON-RPC error of the body, nil if there was none.
func (e *HTTPError) Unwrap() error {
	if e.RPC == nil {
		return nil
	}
	return e.RPC
}

// Lost marks the reason why a connection ended as the loss of what was in progress: the error
// is io.ErrUnexpectedEOF to errors.Is, and else what it was.
func Lost(err error) error { return lost{err} }

type lost struct{ error }

func (l lost) Unwrap() error        { return l.error }
func (l lost) Is(target error) bool { return target == io.ErrUnexpectedEOF }

// AnswerTo makes the response to a server's request from what a Question
// function returned.
func AnswerTo(id jsonrpc.ID, result json.RawMessage, err error) []byte {
	if err != nil {
		return jsonrpc.AppendError(nil, id, AsError(err))
	}
	return jsonrpc.AppendResult(nil, id, jsonx.OrObject(result))
}

// Tap is told of every frame that crosses a wire, as bytes, before it is decoded
// or after it was encoded, and of what becomes of the wire. It must not keep or change
// what the frame refers to, nor block for long.
type Tap func(trace.Frame)
