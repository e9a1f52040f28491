package duplex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// Bounds of what a server can pile up at a client.
const (
	maxNotes     = 4096 // notifications of one call that nobody has taken yet
	maxQuestions = 64   // requests of the server's own in progress
	maxSpare     = 64   // calls that ended and are kept for the next
	maxReplies   = 64   // pings, and requests too many, that are being answered
	maxLate      = 256  // answers that are listened for after their calls were given up
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
	conn jsonrpc.Conn
	opts ClientOptions

	contextWriter contextWriter // conn, if it is one; else nil
	stager        stager        // conn, if it can hold frames back; else nil
	flushing      atomic.Bool   // somebody is about to flush stager

	modern atomic.Bool
	nextID atomic.Int64

	ctx    context.Context // of questions; ends with the connection
	cancel context.CancelCauseFunc
	done   chan struct{}
	wg     sync.WaitGroup

	replying chan struct{} // a slot per reply being written

	mu        sync.Mutex
	calls     map[jsonrpc.ID]*call              // without an answer yet; guarded by mu
	standing  int                               // calls that are subscriptions, and stay; guarded by mu
	spare     []*call                           // guarded by mu
	late      []lateAnswer                      // that may come, of the calls given up last; guarded by mu
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
	c := &Client{conn: conn, opts: opts, done: make(chan struct{}), replying: make(chan struct{}, maxReplies), calls: map[jsonrpc.ID]*call{}, questions: map[jsonrpc.ID]context.CancelFunc{}}
	c.contextWriter, _ = conn.(contextWriter)
	c.stager, _ = conn.(stager)
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.wg.Go(c.read)
	return c
}

// call is a request of ours in flight. Its notes wait here for the goroutine of
// Call. All but wake is guarded by mu of the client, and nobody has it any more when
// its goroutine has taken it out of calls: so it can be used again.
type call struct {
	id    jsonrpc.ID
	out   *engine.Outgoing
	notes []note

	answered bool
	result   json.RawMessage
	err      error // of the server, or of the connection

	wake chan struct{} // capacity 1: there is something new
}

type note struct {
	method string
	params json.RawMessage
}

// tell gives a call a notification; false if it has too many. Mu is held.
func (cl *call) tell(n note) bool {
	if len(cl.notes) >= maxNotes {
		return false
	}
	cl.notes = append(cl.notes, n)
	cl.rouse()
	return true
}

// answer ends a call. Mu is held.
func (c *Client) answer(cl *call, result json.RawMessage, err error) {
	delete(c.calls, cl.id)
	cl.answered, cl.result, cl.err = true, result, err
	cl.rouse()
}

func (cl *call) rouse() {
	select {
	case cl.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// lateAnswer is what wants the answer to a call that was given up.
type lateAnswer struct {
	id   jsonrpc.ID
	take func(result json.RawMessage)
}

// begin registers a call, and tells whether there are others that were begun of late, as far as
// that can be told.
func (c *Client) begin(out *engine.Outgoing) (cl *call, others bool, err error) {
	id := jsonrpc.IntID(c.nextID.Add(1))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, false, c.err
	}
	if last := len(c.spare) - 1; last >= 0 {
		cl, c.spare = c.spare[last], c.spare[:last]
	} else {
		cl = &call{wake: make(chan struct{}, 1)}
	}
	cl.id, cl.out = id, out
	c.calls[id] = cl
	if cl.stands() {
		c.standing++
	}
	return cl, len(c.calls)-c.standing > 1, nil
}

func (cl *call) stands() bool { return cl.out.Method == revision.MethodListen }

// forget ends a call, answered or not.
func (c *Client) forget(cl *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, cl.id)
	if cl.stands() {
		c.standing--
	}
	select {
	case <-cl.wake:
	default:
	}
	if len(c.spare) < maxSpare {
		*cl = call{wake: cl.wake}
		c.spare = append(c.spare, cl)
	}
}

// Call implements engine.Wire.
func (c *Client) Call(ctx context.Context, out *engine.Outgoing) (json.RawMessage, error) {
	cl, others, err := c.begin(out)
	if err != nil {
		return nil, err
	}
	defer c.forget(cl)
	frame := buffer.Get()
	*frame = jsonrpc.AppendRequest(*frame, cl.id, out.Method, out.Params)
	if others {
		err = c.writeAlong(ctx, *frame, cl.id, out.Method)
	} else {
		err = c.write(ctx, *frame, cl.id, out.Method)
	}
	buffer.Put(frame)
	if err != nil {
		if ctx.Err() != nil {
			c.giveUp(cl)
		}
		return nil, err
	}
	one, other := engine.Ends(ctx)
	for {
		over := false
		select {
		case <-cl.wake:
		case <-one:
			over = true
		case <-other:
			over = true
		}
		if over {
			if c.giveUp(cl) {
				c.abandon(cl.id, out.Method)
			}
			return nil, context.Cause(ctx)
		}
		c.mu.Lock()
		notes, answered := cl.notes, cl.answered
		cl.notes = nil
		c.mu.Unlock()
		for _, n := range notes {
			if out.Inbox != nil {
				out.Inbox.Note(n.method, n.params)
			} else {
				c.opts.Inbox.Note(n.method, n.params)
			}
		}
		if answered {
			return cl.result, cl.err
		}
	}
}

// giveUp lets an answer that comes all the same go to who may want it; false if it is here
// already.
func (c *Client) giveUp(cl *call) bool {
	var late func(json.RawMessage)
	if inbox, ok := cl.out.Inbox.(engine.LateInbox); ok {
		late = inbox.GivenUp()
	}
	c.mu.Lock()
	_, open := c.calls[cl.id]
	result := cl.result
	if open && late != nil {
		if len(c.late) == maxLate {
			c.late = slices.Delete(c.late, 0, 1)
		}
		c.late = append(c.late, lateAnswer{cl.id, late})
	}
	delete(c.calls, cl.id)
	c.mu.Unlock()
	if !open && late != nil {
		late(result)
	}
	return open
}

// takeLate hands on the answer to a call that was given up; false if nobody wants it.
func (c *Client) takeLate(msg *jsonrpc.Message, result json.RawMessage) bool {
	c.mu.Lock()
	i := slices.IndexFunc(c.late, func(l lateAnswer) bool { return l.id == msg.ID })
	if i < 0 {
		c.mu.Unlock()
		return false
	}
	take := c.late[i].take
	c.late = slices.Delete(c.late, i, i+1)
	c.mu.Unlock()
	take(result)
	return true
}

// abandon tells the server that an answer is no longer wanted, without waiting
// for that to be written. Initialize is never cancelled (CANC-25-002).
func (c *Client) abandon(id jsonrpc.ID, method string) {
	if method == revision.MethodInitialize || id.IsZero() {
		return
	}
	// The goroutine ends with the connection, whose Close unblocks it.
	go func() {
		_ = c.writeError(c.conn.Write(jsonrpc.AppendNotification(nil, revision.NoteCancelled, requestID(id))))
	}()
}

// write sends a frame, but does not wait longer than ctx: a server that does not read
// must not hold its client. If the frame, a request with this id, goes out all the same, it
// is abandoned; a zero id stands for a notification.
func (c *Client) write(ctx context.Context, frame []byte, id jsonrpc.ID, method string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.contextWriter == nil && ctx.Done() != nil {
		return c.writeApart(ctx, frame, id, method)
	}
	var sent bool
	var err error
	if c.contextWriter != nil {
		sent, err = c.contextWriter.WriteContext(ctx, frame)
	} else {
		err = c.conn.Write(frame)
	}
	return c.written(ctx, sent, err, id, method)
}

// writeAlong is write of a request among others. Those that come at about the same time go
// out together: one write for them, and one read for the server.
func (c *Client) writeAlong(ctx context.Context, frame []byte, id jsonrpc.ID, method string) error {
	if c.stager == nil || ctx.Err() != nil || !c.stager.Stage(frame) {
		return c.write(ctx, frame, id, method)
	}
	if c.flushing.Swap(true) {
		return nil // if that fails the connection ends, and the call with it
	}
	runtime.Gosched() // whoever is about to call
	c.flushing.Store(false)
	sent, err := c.stager.Flush(ctx)
	return c.written(ctx, sent, err, id, method)
}

// written deals with how a write went.
func (c *Client) written(ctx context.Context, sent bool, err error, id jsonrpc.ID, method string) error {
	if err != nil && ctx.Err() != nil && err == context.Cause(ctx) {
		if sent {
			c.abandon(id, method)
		}
		return err
	}
	return c.writeError(err)
}

// writeApart is write for a connection that cannot give up a Write.
func (c *Client) writeApart(ctx context.Context, frame []byte, id jsonrpc.ID, method string) error {
	frame = bytes.Clone(frame)
	written := make(chan error, 1)
	go func() { written <- c.conn.Write(frame) }() // it ends with the connection
	select {
	case err := <-written:
		return c.writeError(err)
	case <-ctx.Done():
		go func() {
			if <-written == nil {
				c.abandon(id, method)
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
	return c.write(ctx, jsonrpc.AppendNotification(nil, method, params), jsonrpc.ID{}, method)
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
	if err != ErrClosed {
		if c.opts.Explain != nil {
			err = c.opts.Explain(err)
		}
		err = engine.Lost(err)
	}
	c.mu.Lock()
	c.err = err
	for _, cl := range c.calls {
		c.answer(cl, nil, err)
	}
	c.cancel(err)
	close(c.done) // with mu held: who sees its call fail finds that the connection is over
	c.mu.Unlock()
}

func (c *Client) read() {
	lim := jsonrpc.Limits{MaxDepth: c.opts.MaxDepth}
	var buf []byte
	for {
		// What somebody keeps of a frame is copied, so the next takes its place; but a
		// small one not that of one so large that keeping it would hurt.
		if cap(buf) > 64<<10 && len(buf) < cap(buf)/4 {
			buf = nil
		}
		frame, err := c.conn.Read(buf)
		if err != nil {
			if !c.passOver(err) {
				return
			}
			continue
		}
		buf = frame
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

// passOver deals with an error of Read, and tells whether reading goes on after it.
func (c *Client) passOver(err error) bool {
	var big *jsonrpc.FrameTooLargeError
	switch {
	case errors.As(err, &big):
		c.opts.Logger.Warn("message of the server is too large", "err", err)
		c.tooLarge(big)
		return true
	case errors.Is(err, io.EOF):
		err = errors.New("the server closed the connection")
	}
	c.end(err)
	return false
}

// broken deals with a frame that is no message: if it was an answer, the call
// fails with what is wrong; anything else, such as a stray print of the server, is
// logged and passed over.
func (c *Client) broken(err error, frame []byte) {
	var bad *jsonrpc.DecodeError
	if errors.As(err, &bad) && !bad.ID.IsZero() {
		c.mu.Lock()
		cl := c.calls[bad.ID]
		if cl != nil {
			c.answer(cl, nil, &jsonrpc.Error{Code: bad.Err.Code, Message: "the server's answer is no valid message: " + bad.Err.Message})
		}
		c.mu.Unlock()
		if cl != nil {
			return
		}
	}
	c.opts.Logger.Warn("server sent no message", "err", err, "line", clip(frame))
}

// tooLarge fails the call whose answer was skipped, if that can be told: by its beginning, or
// because there is only one.
func (c *Client) tooLarge(big *jsonrpc.FrameTooLargeError) {
	if _, asks := jsonx.Lookup(big.Head, "method"); asks {
		return
	}
	var bad *jsonrpc.DecodeError
	_, err := jsonrpc.Decode(big.Head, jsonrpc.Limits{})
	c.mu.Lock()
	defer c.mu.Unlock()
	var cl *call
	if errors.As(err, &bad) && !bad.ID.IsZero() {
		cl = c.calls[bad.ID]
	} else {
		cl = engine.Only(c.speaking(), func(*call) bool { return false })
	}
	if cl != nil {
		c.answer(cl, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the server's answer is too large: " + big.Error()})
	}
}

// message deals with one message, whose bytes are good until it returns.
func (c *Client) message(msg *jsonrpc.Message) {
	switch msg.Kind() {
	case jsonrpc.KindResponse:
		c.response(msg)
	case jsonrpc.KindNotification:
		c.notification(msg)
	default:
		c.question(msg)
	}
}

func (c *Client) response(msg *jsonrpc.Message) {
	var err error
	if e := msg.Error; e != nil {
		e.Data = bytes.Clone(e.Data)
		err = e
	}
	result := bytes.Clone(msg.Result)
	c.mu.Lock()
	cl := c.calls[msg.ID]
	if cl != nil {
		c.answer(cl, result, err)
	}
	c.mu.Unlock()
	if cl == nil && !c.takeLate(msg, result) {
		c.opts.Logger.Debug("response to no request", "id", msg.ID.String())
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
	params := bytes.Clone(msg.Params)
	told := true
	c.mu.Lock()
	cl := c.owner(msg)
	if cl != nil {
		told = cl.tell(note{msg.Method, params})
	}
	c.mu.Unlock()
	switch {
	case !told:
		c.opts.Logger.Warn("notifications dropped", "method", msg.Method)
	case cl == nil:
		c.opts.Inbox.Note(msg.Method, params)
	}
}

// owner finds the call that a notification belongs to: by progress token or by
// subscription id, and a log message by being the only one in flight that wants any. Mu is held.
func (c *Client) owner(msg *jsonrpc.Message) *call {
	token, subscription := tieOf(msg)
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
		return engine.Only(c.speaking(), func(cl *call) bool { return cl.out.Logs })
	}
	return nil
}

// speaking are the calls in flight but for subscriptions, which have no log messages
// (LOG-26-005). Mu is held.
func (c *Client) speaking() iter.Seq[*call] {
	return func(yield func(*call) bool) {
		for _, cl := range c.calls {
			if !cl.stands() && !yield(cl) {
				return
			}
		}
	}
}

// asker finds the call that can have caused a question: of several the one whose handler
// may ask, as a list that is fetched meanwhile is no reason to doubt. Mu is held.
func (c *Client) asker() *call {
	return engine.Only(c.speaking(), func(cl *call) bool { return revision.Asks(cl.out.Method) })
}

// question has a request of the server's own answered. A modern server sends
// none; one that does gets no answer (STDIO-26-005).
func (c *Client) question(msg *jsonrpc.Message) {
	if c.modern.Load() {
		c.opts.Logger.Warn("a server of the modern era sent a request; ignored", "method", msg.Method)
		return
	}
	if msg.Method == revision.MethodPing {
		c.reply(jsonrpc.AppendResult(nil, msg.ID, json.RawMessage(`{}`)))
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
	if cl := c.asker(); cl != nil && cl.out.Inbox != nil {
		ask = cl.out.Inbox.Question
	}
	c.mu.Unlock()
	if busy || twice {
		stop()
		err := fmt.Errorf("%d requests of the server are in progress, the most there may be; wait for an answer", maxQuestions)
		if twice {
			err = fmt.Errorf("a request with the id %.100s is in progress; use another", msg.ID.String())
		}
		c.reply(engine.AnswerTo(msg.ID, nil, err))
		return
	}
	id, method, params := msg.ID, msg.Method, bytes.Clone(msg.Params)
	c.wg.Go(func() {
		defer stop()
		result, err := ask(ctx, method, params)
		c.mu.Lock()
		delete(c.questions, id)
		c.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		c.send(engine.AnswerTo(id, result, err))
	})
}

// reply writes a response without holding up the reading goroutine, on which
// it is called. A server that does not read them gets no more.
func (c *Client) reply(frame []byte) {
	select {
	case c.replying <- struct{}{}:
	default:
		c.opts.Logger.Warn("answer dropped, since the server reads none", "waiting", maxReplies)
		return
	}
	c.wg.Go(func() {
		defer func() { <-c.replying }()
		c.send(frame)
	})
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
