package duplex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// Bounds of what a server can pile up at a client.
const (
	maxNotes     = 4096 // notifications of one call that nobody has taken yet
	maxQuestions = 64   // requests of the server's own in progress
)

// ErrClosed says that the connection was closed on this side.
var ErrClosed = errors.New("the connection is closed")

// ClientOptions configure a [Client]. Inbox and Logger are required.
type ClientOptions struct {
	Inbox    engine.Inbox
	MaxDepth int
	Tap      engine.Tap
	Logger   *slog.Logger

	// Explain adds to the error of a connection that the peer closed, for instance
	// how its process ended. It may be nil.
	Explain func(err error) error
}

// Client is our end, as a client, of a duplex wire. It owns a reading goroutine
// and one per question of the server, finished when Close returns, unless the
// function that answers ignores the end of its context.
type Client struct {
	conn   jsonrpc.Conn
	opts   ClientOptions
	modern atomic.Bool
	nextID atomic.Int64

	ctx    context.Context // of questions; ends with the connection
	cancel context.CancelCauseFunc
	done   chan struct{}
	wg     sync.WaitGroup

	mu        sync.Mutex
	calls     map[jsonrpc.ID]*call              // guarded by mu
	questions map[jsonrpc.ID]context.CancelFunc // guarded by mu
	ending    bool                              // somebody sets err and closes done; guarded by mu
	err       error                             // why done is closed; guarded by mu
}

var _ engine.Wire = (*Client)(nil)

// NewClient starts reading from conn, which the client owns from now on. An error of
// its Write that is or wraps an *engine.HTTPError is about that message alone; any
// other ends the connection.
func NewClient(conn jsonrpc.Conn, opts ClientOptions) *Client {
	conn = newTapped(conn, opts.Tap, trace.Out)
	c := &Client{conn: conn, opts: opts, done: make(chan struct{}), calls: map[jsonrpc.ID]*call{}, questions: map[jsonrpc.ID]context.CancelFunc{}}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.wg.Go(c.read)
	return c
}

// call is a request of ours in flight. Its notes wait here for the goroutine of
// Call.
type call struct {
	out  *engine.Outgoing
	wake chan struct{} // capacity 1

	mu       sync.Mutex
	notes    []note           // guarded by mu
	response *jsonrpc.Message // guarded by mu
}

type note struct {
	method string
	params json.RawMessage
}

func (cl *call) put(n *note, response *jsonrpc.Message) bool {
	cl.mu.Lock()
	ok := true
	if n != nil {
		if ok = len(cl.notes) < maxNotes; ok {
			cl.notes = append(cl.notes, *n)
		}
	} else if cl.response == nil { // a second one is the peer's mistake
		cl.response = response
	}
	cl.mu.Unlock()
	select {
	case cl.wake <- struct{}{}:
	default:
	}
	return ok
}

func (cl *call) take() ([]note, *jsonrpc.Message) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	notes := cl.notes
	cl.notes = nil
	return notes, cl.response
}

// Call implements engine.Wire.
func (c *Client) Call(ctx context.Context, out *engine.Outgoing) (json.RawMessage, error) {
	id := jsonrpc.IntID(c.nextID.Add(1))
	cl := &call{out: out, wake: make(chan struct{}, 1)}
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return nil, err
	}
	c.calls[id] = cl
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
	}()
	late := func() { c.abandon(id, out.Method) }
	if err := c.write(ctx, jsonrpc.AppendRequest(nil, id, out.Method, out.Params), late); err != nil {
		return nil, err
	}
	for {
		var over bool
		select {
		case <-cl.wake:
		case <-ctx.Done():
			c.abandon(id, out.Method)
			return nil, context.Cause(ctx)
		case <-c.done:
			over = true
		}
		notes, response := cl.take()
		for _, n := range notes {
			if out.Note != nil {
				out.Note(n.method, n.params)
			}
		}
		switch {
		case response == nil && over:
			return nil, c.Err()
		case response == nil:
		case response.Error != nil:
			return nil, response.Error
		default:
			return response.Result, nil
		}
	}
}

// abandon tells the server that an answer is no longer wanted, without waiting
// for that to be written. Initialize is never cancelled (CANC-25-002).
func (c *Client) abandon(id jsonrpc.ID, method string) {
	if method == revision.MethodInitialize {
		return
	}
	// Best effort; the goroutine ends with the connection, whose Close unblocks it.
	go c.conn.Write(jsonrpc.AppendNotification(nil, revision.NoteCancelled, requestID(id)))
}

// write sends a frame, but does not wait longer than ctx: a server that does not read
// must not hold its client. If the frame is sent after that, late is called.
func (c *Client) write(ctx context.Context, frame []byte, late func()) error {
	if ctx.Done() == nil {
		return c.writeError(c.conn.Write(frame))
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	written := make(chan error, 1)
	go func() { written <- c.conn.Write(frame) }()
	select {
	case err := <-written:
		return c.writeError(err)
	case <-ctx.Done():
		go func() {
			if <-written == nil && late != nil {
				late()
			}
		}()
		return context.Cause(ctx)
	}
}

// refused tells whether a wire turned down one message and is as good as before.
func refused(err error) bool {
	var he *engine.HTTPError
	return errors.As(err, &he)
}

// writeError prefers the reason why the connection ended over what writing to it says.
func (c *Client) writeError(err error) error {
	if err == nil || refused(err) {
		return err
	}
	c.end(err)
	return c.Err()
}

// Notify implements engine.Wire.
func (c *Client) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return c.write(ctx, jsonrpc.AppendNotification(nil, method, params), nil)
}

// Negotiated implements engine.Wire.
func (c *Client) Negotiated(t *revision.Table) { c.modern.Store(t.Modern) }

// Done implements engine.Wire.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err implements engine.Wire.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// closeGrace is for the functions that answer questions to notice the end.
const closeGrace = 250 * time.Millisecond

// Close implements engine.Wire.
func (c *Client) Close() error {
	c.end(ErrClosed)
	err := c.conn.Close()
	ended := make(chan struct{})
	go func() { defer close(ended); c.wg.Wait() }()
	t := time.NewTimer(closeGrace)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C: // a function of the user does not return; it is left behind
	}
	return err
}

// end marks the connection as over and returns when it is; the first reason counts.
func (c *Client) end(err error) {
	c.mu.Lock()
	first := !c.ending
	c.ending = true
	c.mu.Unlock()
	if !first {
		<-c.done
		return
	}
	if err != ErrClosed && c.opts.Explain != nil {
		err = c.opts.Explain(err)
	}
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	c.cancel(err)
	close(c.done)
}

func (c *Client) read() {
	lim := jsonrpc.Limits{MaxDepth: c.opts.MaxDepth}
	for {
		// A frame's bytes belong to whoever gets its result, so each has its own.
		frame, err := c.conn.Read(nil)
		var big *jsonrpc.FrameTooLargeError
		switch {
		case errors.As(err, &big):
			c.opts.Logger.Warn("message of the server is too large", "err", err)
			c.tooLarge(big)
			continue
		case errors.Is(err, io.EOF):
			c.end(errors.New("the server closed the connection"))
			return
		case err != nil:
			c.end(err)
			return
		}
		if jsonrpc.IsBatch(frame) {
			elements, err := jsonrpc.DecodeBatch(frame, lim)
			if err != nil {
				c.opts.Logger.Warn("server sent no message", "err", err)
				continue
			}
			for i := range elements {
				if elements[i].Err != nil {
					c.broken(elements[i].Err, frame)
					continue
				}
				c.message(&elements[i].Message)
			}
			continue
		}
		msg, err := jsonrpc.Decode(frame, lim)
		if err != nil {
			c.broken(err, frame)
			continue
		}
		c.message(&msg)
	}
}

// broken deals with a frame that is no message: if it was an answer, the call
// fails with what is wrong; anything else, such as a stray print of the server, is
// logged and passed over.
func (c *Client) broken(err error, frame []byte) {
	var bad *jsonrpc.DecodeError
	if errors.As(err, &bad) && !bad.ID.IsZero() {
		c.mu.Lock()
		cl := c.calls[bad.ID]
		c.mu.Unlock()
		if cl != nil {
			cl.put(nil, &jsonrpc.Message{ID: bad.ID, Error: &jsonrpc.Error{Code: bad.Err.Code, Message: "the server's answer is no valid message: " + bad.Err.Message}})
			return
		}
	}
	c.opts.Logger.Warn("server sent no message", "err", err, "line", clip(frame))
}

// tooLarge fails the call whose answer was skipped, if that can be told.
func (c *Client) tooLarge(big *jsonrpc.FrameTooLargeError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) == 1 {
		for _, cl := range c.calls {
			cl.put(nil, &jsonrpc.Message{Error: &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the server's answer is too large: " + big.Error()}})
		}
	}
}

func (c *Client) message(msg *jsonrpc.Message) {
	switch msg.Kind() {
	case jsonrpc.KindResponse:
		c.mu.Lock()
		cl := c.calls[msg.ID]
		c.mu.Unlock()
		if cl == nil {
			c.opts.Logger.Debug("response to no request", "id", msg.ID.String())
			return
		}
		m := *msg
		cl.put(nil, &m)
	case jsonrpc.KindNotification:
		c.notification(msg)
	default:
		c.question(msg)
	}
}

func (c *Client) notification(msg *jsonrpc.Message) {
	if msg.Method == revision.NoteCancelled {
		raw, _ := msg.Param("requestId")
		if id, err := jsonrpc.ParseID(raw); err == nil {
			c.mu.Lock()
			stop := c.questions[id]
			c.mu.Unlock()
			if stop != nil {
				stop()
				return
			}
		}
	}
	if cl := c.owner(msg); cl != nil {
		if !cl.put(&note{msg.Method, msg.Params}, nil) {
			c.opts.Logger.Warn("notifications dropped", "method", msg.Method)
		}
		return
	}
	c.opts.Inbox.Note(msg.Method, msg.Params)
}

// owner finds the call that a notification belongs to: by progress token or by
// subscription id, and a log message by being the only one in flight.
func (c *Client) owner(msg *jsonrpc.Message) *call {
	token, subscription := tieOf(msg)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case subscription != nil:
		if id, err := jsonrpc.ParseID(subscription); err == nil {
			return c.calls[id]
		}
	case token != nil && msg.Method == revision.NoteProgress:
		for _, cl := range c.calls {
			if string(cl.out.Token) == string(token) {
				return cl
			}
		}
	case msg.Method == revision.NoteMessage:
		var only *call
		for _, cl := range c.calls {
			if cl.out.Method == revision.MethodListen {
				continue // has no log messages of its own (LOG-26-005)
			}
			if only != nil {
				return nil
			}
			only = cl
		}
		return only
	}
	return nil
}

// question has a request of the server's own answered. A modern server sends
// none; one that does gets no answer (STDIO-26-005).
func (c *Client) question(msg *jsonrpc.Message) {
	if c.modern.Load() {
		c.opts.Logger.Warn("a server of the modern era sent a request; ignored", "method", msg.Method)
		return
	}
	if msg.Method == revision.MethodPing {
		c.answer(jsonrpc.AppendResult(nil, msg.ID, json.RawMessage(`{}`)))
		return
	}
	c.mu.Lock()
	busy := len(c.questions) >= maxQuestions
	_, twice := c.questions[msg.ID]
	ctx, stop := context.WithCancel(c.ctx)
	if !busy && !twice {
		c.questions[msg.ID] = stop
	}
	ask := c.opts.Inbox.Question
	if len(c.calls) == 1 {
		// Only one call can have caused the question.
		for _, cl := range c.calls {
			if cl.out.Question != nil {
				ask = cl.out.Question
			}
		}
	}
	c.mu.Unlock()
	if busy || twice {
		stop()
		c.answer(engine.AnswerTo(msg.ID, nil, fmt.Errorf("too many requests in progress, or one with the id %s", msg.ID)))
		return
	}
	m := *msg
	c.wg.Go(func() {
		defer stop()
		result, err := ask(ctx, m.Method, m.Params)
		c.mu.Lock()
		delete(c.questions, m.ID)
		c.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		c.send(engine.AnswerTo(m.ID, result, err))
	})
}

// answer writes a response without holding up the reading goroutine, on which
// it is called.
func (c *Client) answer(frame []byte) {
	c.wg.Go(func() { c.send(frame) })
}

// send writes a response.
func (c *Client) send(frame []byte) {
	switch err := c.conn.Write(frame); {
	case err == nil:
	case refused(err):
		c.opts.Logger.Warn("answer to a question not delivered", "err", err)
	default:
		c.end(err)
	}
}

// clip bounds what a peer sent for a log.
func clip(b []byte) string {
	if len(b) > 200 {
		return string(b[:200]) + "…"
	}
	return string(b)
}
