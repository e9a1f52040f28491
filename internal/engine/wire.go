package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// A Wire is the client's end of a connection to one server, over any transport. It carries
// messages without interpreting them: its user handles revisions. Its methods are safe for
// concurrent use.
type Wire interface {
	// Call sends a request under a new id and waits for the answer. It returns the raw result,
	// which the caller owns; a *jsonrpc.Error or *HTTPError if the server answered with one; else
	// a local failure. If ctx ends first, it cancels the request without waiting for the
	// cancellation to be written, and returns the cause of ctx; if ctx has ended before, it sends
	// nothing. It keeps no reference to out.
	Call(ctx context.Context, out *Outgoing) (json.RawMessage, error)

	// Notify sends a notification. If ctx has ended before, it sends nothing and returns the cause.
	Notify(ctx context.Context, method string, params json.RawMessage) error

	// Negotiated sets the revision for the messages that follow.
	Negotiated(t *revision.Table)

	// Done is closed when the connection is over; Err then returns the reason.
	Done() <-chan struct{}
	Err() error

	// Close ends the connection, bounded in time. Pending calls fail.
	Close() error
}

// Outgoing is one request from the client.
type Outgoing struct {
	Method string
	Params json.RawMessage

	// Token is the progress token that Params carry, as raw JSON; nil for none. A
	// wire without a stream per request finds the call by it.
	Token json.RawMessage

	// Logs reports whether the request asks for log messages, which cannot be assigned to it on a
	// wire without a stream per request.
	Logs bool

	// Header is sent with the request over HTTP, besides the transport's own headers.
	Header http.Header

	// Inbox gets the messages that belong to the call: Note is called in order, before Call returns
	// and on its goroutine; Question for requests from a legacy server on a stream of this call
	// alone. If nil, the inbox of the wire gets them.
	Inbox Inbox
}

// Inbox gets the messages from a server other than answers.
type Inbox interface {
	// Note is called with each notification, in order. It must not block.
	Note(method string, params json.RawMessage)

	// Question answers a request from a legacy server, on a goroutine of its own. The inbox of a
	// wire gets the questions that name no call.
	Question(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// LateInbox is an Inbox that may get the answer to a call that was given up. No answer comes if
// giving up closes its stream, as over HTTP.
type LateInbox interface {
	Inbox

	// GivenUp is called when Call gives up a request that was or may yet be sent. The function it
	// returns is called at most once, with the late result, or nil if there is none. The function
	// must not block and may be nil.
	GivenUp() (late func(result json.RawMessage))
}

// Only returns the call in flight that a message without a reference to a call must belong to:
// the only likely one, or else the only one. It returns nil if there are several, so that a
// message never reaches the wrong caller.
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

// HTTPError is an HTTP response that is not a success. RPC holds the JSON-RPC error of its body,
// if there was one.
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
	return StatusText(e.Status, e.Header, e.Body)
}

// StatusText returns a line about an HTTP response that is not a success: its status, and the beginning of its body, unless that is a web
// page or has only the words of the status.
func StatusText(status int, h http.Header, body string) string {
	words := http.StatusText(status)
	line := fmt.Sprintf("HTTP %d %s", status, words)
	said := strings.Join(strings.Fields(body), " ")
	switch bare := strings.TrimPrefix(strings.ToLower(said), fmt.Sprintf("%d ", status)); {
	case bare == "", bare == strings.ToLower(words), bare == "page not found": // as http.NotFound says it
		return line
	case IsPage(h, said):
		return line + " (a web page)"
	}
	return fmt.Sprintf("%s: %q", line, text.Short(said))
}

// IsPage reports whether the body of an HTTP response is a web page.
func IsPage(h http.Header, body string) bool {
	body = strings.ToLower(strings.TrimSpace(body))
	return strings.HasPrefix(body, "<!doctype html") || strings.HasPrefix(body, "<html") || strings.Contains(h.Get("Content-Type"), "html")
}

// Unwrap returns the JSON-RPC error of the body, or nil if there was none.
func (e *HTTPError) Unwrap() error {
	if e.RPC == nil {
		return nil
	}
	return e.RPC
}

// Lost wraps the reason why a connection ended with requests in progress: to errors.Is the error
// is also io.ErrUnexpectedEOF.
func Lost(err error) error { return lost{err} }

type lost struct{ error }

func (l lost) Unwrap() error        { return l.error }
func (l lost) Is(target error) bool { return target == io.ErrUnexpectedEOF }

// AnswerTo makes the response to a server's request from the result of a Question function.
func AnswerTo(id jsonrpc.ID, result json.RawMessage, err error) []byte {
	if err != nil {
		return jsonrpc.AppendError(nil, id, AsError(err))
	}
	return jsonrpc.AppendResult(nil, id, jsonx.OrObject(result))
}
