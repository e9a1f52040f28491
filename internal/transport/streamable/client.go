package streamable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// ClientOptions configure a [Client].
type ClientOptions struct {
	// URL is the endpoint.
	URL string

	// HTTP sends the requests; its CheckRedirect is called after the Client's own. It must not
	// have a Timeout, which would end long calls. Nil means a new client.
	HTTP *http.Client

	// Inbox gets messages that belong to no call. If nil, notifications are dropped and questions
	// refused.
	Inbox engine.Inbox

	MaxMessage int // bytes of a message from the server; zero means 4 MiB
	MaxDepth   int // of JSON; zero means 128

	// Renew opens a new session after the server has ended one; its calls must use ctx. If nil,
	// the end of the session ends the client.
	Renew func(ctx context.Context) error

	Tap    *engine.Tap  // may be nil
	Header http.Header  // sent with every request
	Logger *slog.Logger // nil: nothing is logged
}

// Bounds of the client.
const (
	defaultMaxMessage = 4 << 20
	maxQuestions      = 64                      // of the server at the same time
	maxReplies        = 16                      // to pings from the server, and to questions beyond maxQuestions
	cancelTimeout     = 2 * time.Second         // to send a cancellation
	deleteTimeout     = 2 * time.Second         // to end the session
	answerTimeout     = 30 * time.Second        // to post the answer to a question
	answerAgain       = 100 * time.Millisecond  // until an answer is posted for the second time; then twice as long
	drainTimeout      = time.Second             // to see the end of a stream after its response
	closeGrace        = 1500 * time.Millisecond // for goroutines to end
)

// LostError reports that the connection broke before the answer came: the call may or may not
// have run.
type LostError struct {
	Method string
	Err    error // the cause; nil if the server ended the stream
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("connection lost before the answer to %s; the outcome is unknown", e.Method)
	if e.Method == revision.MethodListen {
		text = "connection lost; the subscription has ended"
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *LostError) Unwrap() error { return e.Err }

// Is reports whether target is io.ErrUnexpectedEOF, as for other wires.
func (e *LostError) Is(target error) bool { return target == io.ErrUnexpectedEOF }

// Client is the client's end of Streamable HTTP. It owns a goroutine for the GET stream of a legacy
// session, one for each question from the server, and one for each cancellation being sent; Close
// ends them.
type Client struct {
	opts    ClientOptions
	blank   *http.Request // the common part of all requests; nil if the URL is invalid
	noURL   error         // why the URL is invalid
	http    *http.Client
	release func()          // closes the idle connections of http
	ctx     context.Context // of the whole client; its cause is Err
	cancel  context.CancelCauseFunc
	lastID  atomic.Int64

	streams atomic.Uint64 // GET streams that were opened
	ended   atomic.Uint64 // GET streams that have ended
	reach   reach

	asking chan struct{} // a slot per question being answered
	close  sync.Once

	replying chan struct{} // a slot per ping being answered, or question being refused

	mu        sync.Mutex
	session   string                   // guarded by mu
	opened    time.Time                // when the session was opened; guarded by mu
	useful    bool                     // the session has answered a call; guarded by mu
	acted     bool                     // the session may have state on the server; guarded by mu
	gone      *RenewedError            // the loss of the previous session's state, until it is reported; guarded by mu
	renewal   *renewal                 // of the session, nil most of the time; guarded by mu
	table     *revision.Table          // guarded by mu
	listening bool                     // guarded by mu
	open      map[jsonrpc.ID]*exchange // calls without an answer; guarded by mu
	over      bool                     // no goroutine may start any more; guarded by mu
	wg        sync.WaitGroup           // Add is guarded by mu
}

var _ engine.Wire = (*Client)(nil)

// NewClient makes a client. It does not connect: the first call does.
func NewClient(opts ClientOptions) *Client {
	if opts.MaxMessage <= 0 {
		opts.MaxMessage = defaultMaxMessage
	}
	if opts.Inbox == nil {
		opts.Inbox = nobody{}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{opts: opts, asking: make(chan struct{}, maxQuestions), replying: make(chan struct{}, maxReplies), open: map[jsonrpc.ID]*exchange{}}
	if c.blank, c.noURL = http.NewRequest(http.MethodPost, opts.URL, nil); c.noURL == nil {
		for name, v := range opts.Header {
			c.blank.Header[http.CanonicalHeaderKey(name)] = slices.Clone(v)
		}
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	context.AfterFunc(c.ctx, c.endCalls)
	c.http, c.release = web.NewClient(opts.HTTP, opts.Tap)
	return c
}

// nobody is an Inbox that drops notifications and refuses questions.
type nobody struct{}

func (nobody) Note(string, json.RawMessage) {}

func (nobody) Question(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not answer " + text.Short(method)}
}

// Done is closed when the client is closed or its session is lost.
func (c *Client) Done() <-chan struct{} { return c.ctx.Done() }

// Err returns the reason why the client is over: jsonrpc.ErrClosed or a [*SessionLostError]. It
// returns nil before that.
func (c *Client) Err() error { return context.Cause(c.ctx) }

// Negotiated sets the revision. A legacy client opens its GET stream after it has sent
// notifications/initialized.
func (c *Client) Negotiated(t *revision.Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table = t
}

// start runs f on a goroutine that Close waits for. It returns false after Close.
func (c *Client) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.wg.Go(f)
	return true
}

// Close ends pending calls and the GET stream, and a legacy session on the server.
// It takes at most 3.5 seconds, if the server or a Question function hangs.
func (c *Client) Close() error {
	var err error
	c.close.Do(func() {
		c.mu.Lock()
		c.over = true
		session := c.session
		c.mu.Unlock()
		alive := c.ctx.Err() == nil
		c.cancel(jsonrpc.ErrClosed)
		if session != "" && alive {
			c.deleteSession()
		}
		ended := make(chan struct{})
		go func() { defer close(ended); c.wg.Wait() }()
		t := time.NewTimer(closeGrace)
		defer t.Stop()
		select {
		case <-ended:
		case <-t.C:
			err = fmt.Errorf("close: questions of the server are still being answered after %v", closeGrace)
		}
		c.release()
	})
	return err
}

// deleteSession ends the session on the server (SHTTP-25-040). It ignores the answer.
func (c *Client) deleteSession() {
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	for again := true; ; again = false {
		req, _, err := c.request(ctx, http.MethodDelete, nil, "")
		if err != nil {
			return
		}
		res, err := c.http.Do(req)
		if err == nil {
			res.Body.Close()
			return
		}
		// Close has ended a request whose answer was just there, and net/http closes its connection, which may be this one's.
		if !again || !errors.Is(err, jsonrpc.ErrClosed) {
			c.opts.Logger.Debug("session not ended", "err", err)
			return
		}
	}
}

// request makes a request with the common headers, and returns the negotiated revision, nil before
// that. The argument message is the method for place.
func (c *Client) request(ctx context.Context, method string, body []byte, message string) (*http.Request, *revision.Table, error) {
	if c.noURL != nil {
		return nil, nil, c.noURL
	}
	// A transport of the user may change a request, so requests share no mutable values.
	req := c.blank.WithContext(ctx)
	at := *c.blank.URL
	req.Method, req.URL, req.Header = method, &at, make(http.Header, 8)
	for name, v := range c.blank.Header {
		req.Header[name] = slices.Clone(v)
	}
	if body != nil {
		req.ContentLength = int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	t, session, err := c.place(ctx, message)
	if err != nil {
		return nil, nil, err
	}
	if t != nil && t.Sessions {
		if session != "" {
			req.Header[headerSession] = []string{session} // SHTTP-25-036
		}
		if t.VersionHeader {
			req.Header[headerVersion] = []string{t.Name} // SHTTP-25-041, -042
		}
	}
	return req, t, nil
}

// postRequest makes the POST of one message. The result modern reports whether the message belongs
// to the modern era.
func (c *Client) postRequest(ctx context.Context, body []byte, method string, params json.RawMessage) (req *http.Request, modern bool, err error) {
	req, t, err := c.request(ctx, http.MethodPost, body, method)
	if err != nil {
		return nil, false, err
	}
	h := req.Header
	h["Content-Type"] = typeJSON
	h["Accept"] = acceptBoth
	if method == revision.MethodInitialize {
		delete(h, headerSession)
		delete(h, headerVersion)
	}
	version := versionOf(params, t)
	if version == "" || method == "" {
		return req, false, nil
	}
	// HTTP-26-025 to -032. These headers repeat the revision, method and name (or URI, or task) of
	// the body. The server must refuse a request whose headers and body differ in one of them.
	delete(h, headerSession)
	h[headerVersion] = []string{version}
	h[headerMethod] = []string{method}
	if param := nameParam(method); param != "" {
		if raw, ok := jsonx.Lookup(params, param); ok {
			if name, err := jsonx.Unquote(raw); err == nil {
				h[headerName] = []string{EncodeValue(name)}
			}
		}
	}
	return req, true, nil
}

var acceptBoth = []string{web.AcceptBoth}

// versionOf returns the revision of a message of the modern era, empty for others. A notification
// does not name it; there t, the negotiated revision, decides.
func versionOf(params json.RawMessage, t *revision.Table) string {
	raw, ok := jsonx.LookupPath(params, "_meta", engine.MetaVersion)
	switch {
	case t != nil && !t.Sessions && (!ok || string(raw) == `"`+t.Name+`"`):
		return t.Name
	case ok:
		version, _ := jsonx.Unquote(raw)
		return version
	}
	return ""
}

// do sends a request and returns the response if it is a success, else an *engine.HTTPError or a
// local failure.
func (c *Client) do(req *http.Request, body []byte) (*http.Response, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	c.reach.note(req.Context(), err)
	if err != nil {
		if cause := context.Cause(req.Context()); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, c.lost(req.Header.Get(headerSession), c.httpError(res))
}

// httpError reads a response that is not a success.
func (c *Client) httpError(res *http.Response) *engine.HTTPError {
	return web.Failure(res)
}

// notify sends a notification, once.
func (c *Client) notify(ctx context.Context, method string, params json.RawMessage) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	body := jsonrpc.AppendNotification(nil, method, params)
	req, _, err := c.postRequest(ctx, body, method, params)
	if err != nil {
		return err
	}
	res, err := c.do(req, body)
	if err != nil {
		return err
	}
	web.Discard(res)
	if method == revision.NoteInitialized {
		c.awaitListening(ctx)
	}
	return nil
}

// bound returns a context that ends with ctx and with the client.
func (c *Client) bound(ctx context.Context) (bounded context.Context, cancel func()) {
	bounded, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { end(c.Err()) })
	return bounded, func() { stop(); end(nil) }
}
