package duplex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/stray"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// Bounds of the work that a server can queue at a client.
const (
	maxQuestions = 64  // requests from the server in progress
	maxSpare     = 64  // ended calls that are kept for reuse
	maxReplies   = 64  // pings, and requests over maxQuestions, that are being answered
	maxLate      = 256 // answers that may still come to calls that were given up
)

// ErrClosed is the error after Close on this side.
var ErrClosed = errors.New("the connection is closed")

// ClientOptions configure a [Client]. Inbox and Logger are required.
type ClientOptions struct {
	Inbox    engine.Inbox
	MaxDepth int
	Tap      *engine.Tap // may be nil
	Logger   *slog.Logger

	// Explain adds to the error of a connection that the peer closed, for instance
	// how its process ended. It may be nil.
	Explain func(err error) error

	// Stray gets the frames that are not messages. It may be nil.
	Stray stray.Func
}

// Client is the client's end of a duplex wire. It owns a reading goroutine and one per question
// from the server. They have ended when Close returns, unless a function that answers ignores the
// end of its context.
type Client struct {
	conn jsonrpc.Conn
	opts ClientOptions

	contextWriter contextWriter // conn, or nil if it does not implement contextWriter
	stager        *stagedWire   // conn, or nil if it cannot hold frames back
	flushing      atomic.Bool   // a goroutine is about to flush stager

	modern atomic.Bool
	nextID atomic.Int64

	ctx    context.Context // of questions; ends with the connection
	cancel context.CancelCauseFunc
	done   chan struct{}
	wg     sync.WaitGroup

	replying chan struct{} // a slot per reply being written

	mu        sync.Mutex
	calls     map[jsonrpc.ID]*call              // unanswered calls; guarded by mu
	standing  int                               // calls that are subscriptions; guarded by mu
	spare     []*call                           // guarded by mu
	late      []lateAnswer                      // of the calls given up last; guarded by mu
	questions map[jsonrpc.ID]context.CancelFunc // guarded by mu
	ending    bool                              // err is being set and done closed; guarded by mu
	err       error                             // why done is closed; guarded by mu

	_       [64]byte      // the fields below are written by the reading goroutine
	frames  atomic.Uint64 // received
	strayed bool          // a frame was not a message
}

var _ engine.Wire = (*Client)(nil)

// NewClient starts reading from conn and takes ownership of it. An error of its Write that is or
// wraps an *engine.HTTPError concerns only that message; any other ends the connection.
func NewClient(conn jsonrpc.Conn, opts ClientOptions) *Client {
	stager := stagerOf(conn, opts.Tap)
	conn = newTapped(conn, opts.Tap, trace.Out)
	c := &Client{stager: stager, conn: conn, opts: opts, done: make(chan struct{}), replying: make(chan struct{}, maxReplies), calls: map[jsonrpc.ID]*call{}, questions: map[jsonrpc.ID]context.CancelFunc{}}
	c.contextWriter, _ = conn.(contextWriter)
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.wg.Go(c.read)
	return c
}

// call is a request from the client in flight. Its notes wait here for the goroutine of Call. All
// but wake is guarded by mu of the client. Once its goroutine has removed it from calls there are
// no other references, so it can be reused.
type call struct {
	id    jsonrpc.ID
	out   *engine.Outgoing
	notes engine.Notes

	telling bool          // its goroutine delivers notes that it has taken
	told    chan struct{} // closed when all notes are delivered; nil: nobody waits for that

	answered bool
	result   json.RawMessage
	err      error // of the server, or of the connection

	wake chan struct{} // capacity 1: there are notes or an answer
}

// tell gives a call a notification. Mu is held.
func (cl *call) tell(n engine.Note) {
	cl.notes.Put(n)
	cl.rouse()
}

// answer ends a call. Mu is held.
func (c *Client) answer(cl *call, result json.RawMessage, err error) {
	delete(c.calls, cl.id)
	cl.answered, cl.result, cl.err = true, result, err
	cl.rouse()
}

// pending returns a channel that is closed when the notes that have come are delivered; nil: they are. Mu is held.
func (cl *call) pending() <-chan struct{} {
	if cl.told == nil && (cl.telling || !cl.notes.Empty()) {
		cl.told = make(chan struct{})
	}
	return cl.told
}

// delivered notes that the goroutine of a call has delivered what it had taken. Mu is held.
func (cl *call) delivered() {
	cl.telling = false
	if cl.told != nil && cl.notes.Empty() {
		close(cl.told)
		cl.told = nil
	}
}

func (cl *call) rouse() {
	select {
	case cl.wake <- struct{}{}:
	default: // it wakes anyway
	}
}

// lateAnswer is the receiver of the answer to a call that was given up.
type lateAnswer struct {
	id   jsonrpc.ID
	take func(result json.RawMessage)
}

// begin registers a call. The result others reports whether other calls have probably begun
// recently.
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
	cl.notes = engine.Notes{} // nobody gets them any more
	cl.delivered()
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
	var cause trace.Cause
	if tap := c.opts.Tap; tap.On() && tap.Causes != nil {
		id := cl.id
		cause = tap.Causes.Begin(ctx, id, out)
		defer tap.Causes.End(id)
	}
	frame := buffer.Get()
	*frame = jsonrpc.AppendRequest(*frame, cl.id, out.Method, out.Params)
	if others {
		err = c.writeAlong(ctx, *frame, cl.id, out.Method, cause)
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
	end := engine.Rouse(ctx, cl.wake)
	defer engine.Sleep(ctx, cl.wake)
	for over := false; ; {
		select {
		case <-cl.wake:
		case <-end:
			over = true
		}
		c.mu.Lock()
		notes, dropped := cl.notes.Take()
		answered := cl.answered
		cl.telling = len(notes) > 0
		c.mu.Unlock()
		if dropped > 0 {
			c.opts.Logger.WarnContext(ctx, "notifications dropped", "method", out.Method, "count", dropped)
		}
		for _, n := range notes {
			if out.Inbox != nil {
				out.Inbox.Note(n.Method, n.Params)
			} else {
				c.opts.Inbox.Note(n.Method, n.Params)
			}
		}
		if answered {
			return cl.result, cl.err
		}
		if len(notes) > 0 {
			c.mu.Lock()
			cl.delivered()
			c.mu.Unlock()
		}
		if over || ctx.Err() != nil {
			if c.giveUp(cl) {
				c.abandon(cl.id, out.Method)
			}
			if ctx.Err() == nil {
				<-ctx.Done() // its parent has ended; ctx follows at once
			}
			return nil, context.Cause(ctx)
		}
	}
}

// giveUp registers the receiver of a late answer. It returns false if the answer is here already.
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

// takeLate passes on the answer to a call that was given up. It returns false if there is no
// receiver.
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

// abandon sends a cancellation to the server, without waiting for it to be written. Initialize is
// never cancelled (CANC-25-002).
func (c *Client) abandon(id jsonrpc.ID, method string) {
	if method == revision.MethodInitialize || id.IsZero() {
		return
	}
	// The goroutine ends with the connection, whose Close unblocks it.
	go func() {
		_ = c.writeError(c.conn.Write(jsonrpc.AppendNotification(nil, revision.NoteCancelled, requestID(id))))
	}()
}

// write sends a frame, but does not wait longer than ctx, because a server that does not read must
// not block its client. If the frame is still sent afterwards, the request with this id is
// abandoned; a zero id means a notification.
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

// writeAlong is write for a request among others. Concurrent requests are sent together, in one
// write for them and one read for the server. The cause is that of the request, if it is known.
func (c *Client) writeAlong(ctx context.Context, frame []byte, id jsonrpc.ID, method string, cause trace.Cause) error {
	if c.stager == nil || ctx.Err() != nil || !c.stager.stage(frame, cause) {
		return c.write(ctx, frame, id, method)
	}
	if c.flushing.Swap(true) {
		return nil // if that fails, the connection ends, and the call with it
	}
	runtime.Gosched() // lets other callers add their frames
	c.flushing.Store(false)
	sent, err := c.stager.Flush(ctx)
	return c.written(ctx, sent, err, id, method)
}

// written handles the outcome of a write.
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

// refused reports whether a wire refused one message and is still usable.
func refused(err error) bool {
	var he *engine.HTTPError
	return errors.As(err, &he)
}

// writeError returns the reason why the connection ended, if it has, else err.
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
func (c *Client) Negotiated(t *revision.Table) { c.modern.Store(!t.Sessions) }

// Done implements engine.Wire.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err implements engine.Wire.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// closeGrace is the time for functions that answer questions to notice the end.
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
	case <-t.C: // a user's function does not return; it is left running
	}
	return err
}

// Frames returns the number of frames received so far.
func (c *Client) Frames() uint64 { return c.frames.Load() }

// End ends the connection with err as the reason, as if it were lost. It returns when Done is
// closed, which may wait half a second for Explain.
func (c *Client) End(err error) { c.end(err) }

// end ends the connection and returns when done is closed; the first reason counts.
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
	close(c.done) // with mu held: when a call fails, the connection is already over
	c.mu.Unlock()
}
