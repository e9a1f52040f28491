package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// exchange is one call of the client: a POST, and the GETs that resume its stream.
type exchange struct {
	c      *Client
	out    *engine.Outgoing
	id     jsonrpc.ID
	modern bool
	ctx    context.Context

	session string // the session that the request was sent in

	rest io.ReadCloser // the rest of an event stream after the response

	questions questions

	end   context.CancelCauseFunc // of ctx
	stray *jsonrpc.Message        // the response, if it came on another stream; guarded by c.mu
}

// endCalls ends the calls under way when the client is over.
func (c *Client) endCalls() {
	c.mu.Lock()
	calls := slices.Collect(maps.Values(c.open))
	c.mu.Unlock()
	for _, x := range calls {
		x.end(c.Err())
	}
}

// astray takes the response from a stream that should not carry it, and ends the wait for it.
func (x *exchange) astray(msg *jsonrpc.Message) {
	m := msg.Clone()
	x.c.mu.Lock()
	if x.stray == nil {
		x.stray = &m
	}
	x.c.mu.Unlock()
	x.end(context.Canceled)
}

// call sends a request, once.
func (c *Client) call(ctx context.Context, out *engine.Outgoing) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	x := &exchange{c: c, out: out, id: jsonrpc.IntID(c.lastID.Add(1))}
	x.ctx, x.end = context.WithCancelCause(context.WithoutCancel(ctx))
	attached := context.AfterFunc(ctx, func() { x.end(context.Cause(ctx)) })
	c.mu.Lock()
	c.open[x.id] = x
	c.mu.Unlock()
	if tap := c.opts.Tap; tap.On() && tap.Causes != nil {
		tap.Causes.Begin(ctx, x.id, out)
		defer tap.Causes.End(x.id)
	}
	raw, err := x.run()
	x.questions.end()
	// The server is about to end the stream. Reading its end, for which the caller need not wait,
	// makes the connection reusable.
	if rest := x.rest; rest != nil {
		attached()
		if c.start(func() { drain(rest); x.over() }) {
			return raw, err
		}
		rest.Close()
	}
	defer attached()
	stray := x.over()
	switch {
	case err == nil:
		return raw, nil
	case stray != nil && ctx.Err() == nil:
		raw, _, err = x.message(stray)
		return raw, err
	case ctx.Err() != nil && !x.modern && out.Method != revision.MethodInitialize && x.session == c.sessionID():
		c.cancelled(x.id, context.Cause(ctx))
	}
	if cause := context.Cause(x.ctx); cause != errOver {
		err = cause
	}
	return nil, err
}

// errOver is the cause with which the context of a finished call ends.
var errOver = errors.New("the call is over")

// over ends a call, and returns the response if it came on another stream.
func (x *exchange) over() (stray *jsonrpc.Message) {
	x.end(errOver)
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	delete(x.c.open, x.id)
	return x.stray
}

// drain reads the end of a stream, bounded in time and length.
func drain(rest io.ReadCloser) {
	t := time.AfterFunc(drainTimeout, func() { rest.Close() })
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, rest, 4<<10)
	rest.Close()
}

// cancelled sends notifications/cancelled to a legacy server (SHTTP-25-021).
func (c *Client) cancelled(id jsonrpc.ID, cause error) {
	params := id.AppendJSON([]byte(`{"requestId":`))
	params = append(params, `,"reason":`...)
	reason, err := json.Marshal(text.Short(cause.Error()))
	if err != nil {
		return
	}
	params = append(append(params, reason...), '}')
	c.start(func() {
		ctx, cancel := context.WithTimeout(c.ctx, cancelTimeout)
		defer cancel()
		if err := c.Notify(ctx, revision.NoteCancelled, params); err != nil {
			c.opts.Logger.Debug("cancellation not delivered", "id", id, "err", err)
		}
	})
}

func (x *exchange) run() (json.RawMessage, error) {
	c, out := x.c, x.out
	// The transport may still read the body after the response has come, so the buffer is not
	// reused.
	body := jsonrpc.AppendRequest(make([]byte, 0, len(out.Params)+len(out.Method)+80), x.id, out.Method, out.Params)
	req, modern, err := c.postRequest(x.ctx, body, out.Method, out.Params)
	if err != nil {
		return nil, err
	}
	x.modern, x.session = modern, req.Header.Get(headerSession)
	for name, v := range out.Header {
		req.Header[http.CanonicalHeaderKey(name)] = v
	}
	res, err := c.do(req, body)
	if err != nil {
		return nil, err
	}
	defer func() {
		if x.rest == nil {
			res.Body.Close()
		}
	}()
	if out.Method == revision.MethodInitialize && !modern {
		if err := c.takeSession(res.Header.Get(headerSession)); err != nil {
			return nil, err
		}
	}
	if res.StatusCode == http.StatusAccepted || res.StatusCode == http.StatusNoContent {
		return nil, engine.Unusable("%s: the server answered HTTP %d, which has no response", out.Method, res.StatusCode)
	}
	switch t := mediaType(res.Header); t {
	case "application/json":
		return x.json(res)
	case "text/event-stream":
		return x.follow(&res)
	case "text/html":
		return nil, engine.Unusable("%s: it answers, but is not an MCP server: a web page", out.Method)
	default:
		head, _ := io.ReadAll(io.LimitReader(res.Body, 200))
		return nil, engine.Unusable("%s: the server answered %q, want application/json or text/event-stream; it begins %q", out.Method, text.Short(t), head)
	}
}

// takeSession keeps the id that a server gave with the answer to initialize.
func (c *Client) takeSession(id string) error {
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e { // SHTTP-25-034
			return errors.New("the server's Mcp-Session-Id has characters that are not visible ASCII")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.opened = id, time.Now()
	return nil
}

// mediaType returns the Content-Type without its parameters.
func mediaType(h http.Header) string {
	v := h.Get("Content-Type")
	if v == "application/json" || v == "text/event-stream" {
		return v
	}
	t, _, _ := mime.ParseMediaType(v)
	return t
}

// json reads an answer of one message.
func (x *exchange) json(res *http.Response) (json.RawMessage, error) {
	limit := x.c.opts.MaxMessage
	buf := buffer.Get()
	defer buffer.Put(buf)
	body, err := *buf, error(nil)
	if n := res.ContentLength; n > 0 && n <= int64(limit) {
		body = buffer.Grow(body, int(n)+1) // one byte more, to see the end
	}
	for err == nil && len(body) <= limit {
		var n int
		body = buffer.Grow(body, 1)
		n, err = res.Body.Read(body[len(body):min(cap(body), limit+1)])
		body = body[:len(body)+n]
	}
	*buf = body
	if err != nil && err != io.EOF {
		return nil, &LostError{Method: x.out.Method, Err: err}
	}
	if len(body) > limit {
		return nil, fmt.Errorf("%s: the answer is over the limit of %d bytes", x.out.Method, limit)
	}
	raw, found, err := x.frame(body)
	if err == nil && !found {
		err = engine.Unusable("%s: the body holds no response to the request", x.out.Method)
	}
	return raw, err
}

// follow reads an event stream up to the response, and resumes it if a legacy server allows it
// (SHTTP-25-014, -016, -031).
func (x *exchange) follow(res **http.Response) (json.RawMessage, error) {
	var (
		lastID   string
		retry    = time.Duration(-1)
		failures int // attempts since the last message
	)
	for {
		events := web.NewEventReader((*res).Body, x.c.opts.MaxMessage)
		events.LastID, events.Retry = lastID, retry
		got, raw, err := x.stream(events)
		progressed := got == streamProgressed || events.LastID != lastID
		lastID, retry = events.LastID, events.Retry
		events.Release()
		switch got {
		case streamAnswered:
			x.rest = (*res).Body
			return raw, err
		case streamSpoilt:
			return nil, err
		}
		(*res).Body.Close()
		if progressed {
			failures = 0
		}
		if x.modern || lastID == "" || x.ctx.Err() != nil {
			return nil, &LostError{Method: x.out.Method, Err: err}
		}
		for {
			if failures++; failures > maxResumptions {
				return nil, &LostError{Method: x.out.Method, Err: err}
			}
			if e := sleep(x.ctx, pause(retry, failures)); e != nil {
				return nil, e
			}
			next, e := x.c.stream(x.ctx, lastID)
			if e == nil {
				*res = next
				break
			}
			if !transient(e) {
				return nil, &LostError{Method: x.out.Method, Err: e}
			}
			err = e
		}
	}
}

// maxResumptions bounds the consecutive attempts without a message.
const maxResumptions = 8

// How the reading of a stream ended.
type streamEnd int

const (
	streamEmpty      streamEnd = iota // it broke without a message
	streamProgressed                  // it broke after a message
	streamAnswered                    // the response came
	streamSpoilt                      // the server sent an invalid message
)

func (x *exchange) stream(events *web.EventReader) (streamEnd, json.RawMessage, error) {
	state := streamEmpty
	for {
		data, err := events.Message()
		switch {
		case err == web.ErrEventTooLarge:
			return streamSpoilt, nil, fmt.Errorf("%s: an event is over the limit of %d bytes", x.out.Method, x.c.opts.MaxMessage)
		case err == io.EOF:
			return state, nil, nil
		case err != nil:
			return state, nil, err
		}
		raw, found, err := x.frame(data)
		if err != nil && !found {
			return streamSpoilt, nil, err
		}
		if found {
			return streamAnswered, raw, err
		}
		state = streamProgressed
	}
}

// frame handles one message from the server, or a batch. The result found reports whether the
// response was among them.
//
// An unreadable message is a local failure: its error must not look like a JSON-RPC error from the
// server, so it is not wrapped.
func (x *exchange) frame(data []byte) (raw json.RawMessage, found bool, err error) {
	lim := jsonrpc.Limits{MaxDepth: x.c.opts.MaxDepth}
	if !x.modern && jsonrpc.IsBatch(data) { // 2025-03-26
		batch, err := jsonrpc.DecodeBatch(data, lim)
		if err != nil {
			return nil, false, engine.Unusable("%s: answer: %v", x.out.Method, err)
		}
		for i := range batch {
			if batch[i].Err != nil {
				return nil, false, engine.Unusable("%s: answer: %v", x.out.Method, batch[i].Err)
			}
			r, ok, e := x.message(&batch[i].Message)
			if ok || e != nil {
				raw, found, err = r, ok, e
			}
		}
		return raw, found, err
	}
	msg, err := jsonrpc.Decode(data, lim)
	if err != nil {
		return nil, false, engine.Unusable("%s: answer: %v", x.out.Method, err)
	}
	return x.message(&msg)
}

func (x *exchange) message(msg *jsonrpc.Message) (raw json.RawMessage, found bool, err error) {
	switch msg.Kind() {
	case jsonrpc.KindNotification:
		x.note(msg)
		return nil, false, nil
	case jsonrpc.KindRequest:
		if x.modern { // HTTP-26-017
			x.c.opts.Logger.Warn("request of a server ignored; 2026-07-28 does not allow it", "method", text.Short(msg.Method))
			return nil, false, nil
		}
		inbox := x.c.opts.Inbox
		if x.out.Inbox != nil {
			inbox = x.out.Inbox
		}
		x.questions.start(x.c, x.ctx, msg, inbox.Question)
		return nil, false, nil
	}
	// An error without an id can only be about the one request of this exchange.
	if msg.ID != x.id && !(msg.Error != nil && msg.ID.IsZero()) {
		return nil, false, engine.Unusable("%s: the answer has the id %v, want %v", x.out.Method, msg.ID, x.id)
	}
	if msg.Error != nil {
		e := *msg.Error
		e.Data = append(json.RawMessage(nil), e.Data...)
		return nil, true, &e
	}
	return append(json.RawMessage(nil), msg.Result...), true, nil
}

// note passes on a notification. The stream of a legacy server also carries messages outside of
// calls.
func (x *exchange) note(msg *jsonrpc.Message) {
	own := x.modern || msg.Method == revision.NoteProgress || msg.Method == revision.NoteMessage
	switch {
	case !x.modern && msg.Method == revision.NoteCancelled:
		x.questions.cancel(msg)
	case own && x.out.Inbox != nil:
		x.out.Inbox.Note(msg.Method, append(json.RawMessage(nil), msg.Params...))
	case x.c.opts.Inbox != nil:
		x.c.opts.Inbox.Note(msg.Method, append(json.RawMessage(nil), msg.Params...))
	}
}

// questions are the requests from a legacy server on one stream that are being answered.
type questions struct {
	mu      sync.Mutex
	running map[jsonrpc.ID]context.CancelCauseFunc // guarded by mu
}

var errWithdrawn = errors.New("the server cancelled the question")

// start answers a question on a goroutine of its own. The answer is posted unless ctx ends or the
// server cancels the question.
func (q *questions) start(c *Client, ctx context.Context, msg *jsonrpc.Message, answer func(context.Context, string, json.RawMessage) (json.RawMessage, error)) {
	id, method := msg.ID, msg.Method
	if method == revision.MethodPing { // PING-25-001
		c.reply(id, nil)
		return
	}
	select {
	case c.asking <- struct{}{}:
	default:
		c.reply(id, fmt.Errorf("%d requests of the server are in progress, which is the limit; wait for an answer", maxQuestions))
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	params := append(json.RawMessage(nil), msg.Params...)
	if !q.begin(id, cancel) {
		cancel(nil)
		<-c.asking
		c.opts.Logger.Warn("question ignored: its id is that of a question being answered", "id", id)
		return
	}
	session := c.sessionID()
	started := c.start(func() {
		defer func() { <-c.asking }()
		defer cancel(nil)
		var result json.RawMessage
		err := usercode.Failed()
		defer func() { // a function of the user may end the goroutine
			q.mu.Lock()
			delete(q.running, id)
			q.mu.Unlock()
			if ctx.Err() == nil && session == c.sessionID() { // the question is not of a new session
				c.respond(id, result, err)
			}
		}()
		result, err = answer(ctx, method, params)
	})
	if !started {
		cancel(jsonrpc.ErrClosed)
		<-c.asking
	}
}

// begin registers a request of the server. It returns false if a request with the id is being
// answered already, for instance because a resumed stream delivered it again.
func (q *questions) begin(id jsonrpc.ID, cancel context.CancelCauseFunc) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running[id] != nil {
		return false
	}
	if q.running == nil {
		q.running = map[jsonrpc.ID]context.CancelCauseFunc{}
	}
	q.running[id] = cancel
	return true
}

func (q *questions) cancel(msg *jsonrpc.Message) {
	raw, _ := msg.Param("requestId")
	id, err := jsonrpc.ParseID(raw)
	if err != nil {
		return
	}
	q.mu.Lock()
	cancel := q.running[id]
	q.mu.Unlock()
	if cancel != nil {
		cancel(errWithdrawn)
	}
}

// end cancels the questions that are still being answered.
func (q *questions) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, cancel := range q.running {
		cancel(errWithdrawn)
	}
}

// reply posts an empty answer, or an error, without blocking the reader of the stream. Answers
// are dropped while maxReplies are waiting.
func (c *Client) reply(id jsonrpc.ID, err error) {
	select {
	case c.replying <- struct{}{}:
	default:
		c.opts.Logger.Warn("answer dropped: too many are waiting for the server", "waiting", maxReplies)
		return
	}
	started := c.start(func() {
		defer func() { <-c.replying }()
		c.respond(id, nil, err)
	})
	if !started {
		<-c.replying
	}
}

// respond posts the answer to a question. A server that refuses it for now, or that cannot be reached, gets it again: a second one does
// no harm.
func (c *Client) respond(id jsonrpc.ID, result json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, answerTimeout)
	defer cancel()
	body, session := engine.AnswerTo(id, result, err), c.sessionID()
	for wait := answerAgain; ; wait = min(2*wait, time.Second) {
		if err = c.postAnswer(ctx, body); err == nil {
			return
		}
		var status *engine.HTTPError
		if errors.As(err, &status) && status.Status != http.StatusTooManyRequests && status.Status < http.StatusBadGateway || c.Err() != nil || session != c.sessionID() {
			break
		}
		select {
		case <-time.After(wait):
			continue
		case <-ctx.Done():
		}
		break
	}
	c.opts.Logger.Warn("answer to a question not delivered", "id", id, "err", err)
}

// postAnswer posts an answer once.
func (c *Client) postAnswer(ctx context.Context, body []byte) error {
	req, _, err := c.postRequest(ctx, body, "", nil)
	if err != nil {
		return err
	}
	res, err := c.do(req, body)
	if err == nil {
		web.Discard(res)
	}
	return err
}
