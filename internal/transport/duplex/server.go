package duplex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
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

// Causes of the end of a call's context.
var (
	errCancelled = errors.New("the caller cancelled the call")
	errGone      = errors.New("the caller closed the connection")
)

// Bounds of the waits of a connection.
const (
	// drainTime is the time for calls in flight when the peer closes its side, so that a script
	// that pipes in a few requests gets its answers.
	drainTime = time.Second

	// maxReason bounds the reason of a cancellation, in bytes.
	maxReason = 200
	// unwindTime is the time for handlers to notice that their context has ended.
	unwindTime = time.Second
	// openTime bounds the wait for a session to be opened before the next frame is read.
	openTime = 500 * time.Millisecond
	// announceTime bounds the wait for the subscription to the list changes of a session.
	announceTime = 500 * time.Millisecond
)

// ErrShutdown is returned by Serve after Drain.
var ErrShutdown = engine.ErrShutdown

// Server serves connections with an engine. Its fields are set before use.
type Server struct {
	Engine     *engine.Engine
	MaxDepth   int // of JSON
	Concurrent int // requests in flight on one connection
	Principal  string
	Alone      bool        // no other peer can reach the server: see [engine.Peer]
	Tap        *engine.Tap // may be nil
	Logger     *slog.Logger

	// When Drain is closed, Serve ends subscriptions, refuses new requests and returns when those
	// in flight are answered. It may be nil.
	Drain <-chan struct{}
}

// Serve serves one connection until the peer closes it or stops reading (nil), ctx ends (its
// cause), draining is done (ErrShutdown) or the connection fails (its error). It closes conn. A
// Read that cannot be interrupted is left running.
func (s *Server) Serve(ctx context.Context, conn jsonrpc.Conn) error {
	p := &peer{s: s, conn: newTapped(conn, s.Tap, trace.In), inflight: map[jsonrpc.ID]*exchange{}, pending: map[jsonrpc.ID]chan jsonrpc.Message{},
		read: make(chan error, 1), closed: make(chan struct{})}
	p.stager = stagerOf(conn, s.Tap)
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	defer p.cancel(errGone)

	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		p.watch(ctx, over)
	}()
	go p.lead()
	var err error
	select {
	case err = <-p.read:
	case <-p.closed:
		err = jsonrpc.ErrClosed
	}
	close(over)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case p.draining():
		err = ErrShutdown
	case errors.Is(context.Cause(p.ctx), errGone):
		err = nil
	case errors.Is(err, io.EOF):
		err = nil
		p.endListens(errGone)
		p.wait(ctx, drainTime)
	}
	p.cancel(errGone)
	if sess := p.session(); sess != nil {
		// Close may wait for a peer that does not read.
		p.start(func() { sess.Close(errGone) })
	}
	p.wait(context.Background(), unwindTime)
	p.close()
	<-watched
	return err
}

// watch ends the reading when ctx ends or, after Drain, the last request is answered. It returns
// when the reading is over.
func (p *peer) watch(ctx context.Context, over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-p.s.Drain:
		p.mu.Lock()
		p.down = true
		p.mu.Unlock()
		p.endListens(ErrShutdown)
		select {
		case <-over:
			return
		case <-p.idle():
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		p.cancel(context.Cause(ctx))
		p.wait(context.Background(), unwindTime)
	}
	p.close()
}

// peer is one connection being served. It owns a goroutine that reads, one for each slow request,
// and one for the list changes of a legacy session; all end with ctx, or when the connection is
// closed.
type peer struct {
	s      *Server
	conn   jsonrpc.Conn
	stager *stagedWire // conn, or nil if it cannot hold frames back
	ctx    context.Context
	cancel context.CancelCauseFunc

	read    chan error    // capacity 1; how the reading ended
	closed  chan struct{} // closed with conn
	closing sync.Once
	slow    atomic.Int32 // requests to come that get a goroutine of their own at once
	staged  atomic.Bool  // answers are held back in stager

	mu       sync.Mutex
	sess     *engine.Session                     // guarded by mu
	inflight map[jsonrpc.ID]*exchange            // requests from the peer; guarded by mu
	pending  map[jsonrpc.ID]chan jsonrpc.Message // requests from the server; guarded by mu
	nextID   int64                               // id of the last request from the server; guarded by mu
	busy     int                                 // requests whose answer is not sent yet; guarded by mu
	down     bool                                // new requests are refused; guarded by mu
	changes  context.CancelCauseFunc             // ends the list changes of a legacy session; guarded by mu
	running  int                                 // goroutines and requests; guarded by mu
	quiet    chan struct{}                       // closed when running gets to 0, or nil if not needed; guarded by mu
}

// close closes the connection.
func (p *peer) close() {
	p.closing.Do(func() {
		p.conn.Close()
		close(p.closed)
	})
}

func (p *peer) session() *engine.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sess
}

func (p *peer) draining() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.down
}

// start runs f on a goroutine of the connection.
func (p *peer) start(f func()) {
	p.mu.Lock()
	p.running++
	p.mu.Unlock()
	go func() {
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.ended()
		}()
		f()
	}()
}

// idle returns a channel that is closed when no goroutine of the connection runs.
func (p *peer) idle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet == nil {
		p.quiet = make(chan struct{})
	}
	quiet := p.quiet
	if p.running == 0 {
		close(p.quiet)
		p.quiet = nil
	}
	return quiet
}

// wait waits for the goroutines of the connection, at most d and until ctx ends. Handlers that
// ignore their context are left running.
func (p *peer) wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.idle():
	case <-t.C:
	case <-ctx.Done():
	}
}

// broken handles a frame that is not a message: a request is answered with the error, a response
// fails the server's request that it belongs to.
func (p *peer) broken(err error) (refusal []byte) {
	var bad *jsonrpc.DecodeError
	if errors.As(err, &bad) && bad.Response {
		p.response(&jsonrpc.Message{ID: bad.ID, Error: bad.Err})
		return nil
	}
	return decodeError(err)
}

// decodeError returns the answer to a frame that is not a message.
func decodeError(err error) []byte {
	var bad *jsonrpc.DecodeError
	if errors.As(err, &bad) {
		return jsonrpc.AppendError(nil, bad.ID, bad.Err)
	}
	return jsonrpc.AppendError(nil, jsonrpc.ID{}, &jsonrpc.Error{Code: jsonrpc.CodeParse, Message: err.Error()})
}

// message handles one message. It returns a registered request to serve, or the refusal to write.
// It is a function of its own so that its large frame is not on the stack while a handler runs.
func (p *peer) message(frame []byte, lim jsonrpc.Limits) (x *exchange, refusal []byte) {
	msg, err := jsonrpc.Decode(frame, lim)
	if err != nil {
		return nil, p.broken(err)
	}
	var refused *engine.Reply
	switch msg.Kind() {
	case jsonrpc.KindResponse:
		p.response(&msg)
	case jsonrpc.KindNotification:
		p.notification(&msg)
	default:
		if msg.Method == revision.MethodInitialize && !engine.IsModern(&msg) {
			refused = p.open(&msg)
		} else {
			x, refused = p.begin(&msg)
		}
	}
	if refused != nil {
		refusal = refused.Append(nil)
	}
	return x, refusal
}

// open handles initialize, on whose effect later requests rely. It returns when that is done, or
// after openTime.
func (p *peer) open(msg *jsonrpc.Message) (refused *engine.Reply) {
	if p.session() != nil {
		return &engine.Reply{ID: msg.ID, Err: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "initialize: this connection is initialized already"}}
	}
	// The handler describes the server. A slow one must not delay the end of the connection, nor
	// hold the bytes of the message.
	m := msg.Clone()
	opened := make(chan struct{})
	p.start(func() {
		defer close(opened)
		p.initialize(&m)
	})
	t := time.NewTimer(openTime)
	defer t.Stop()
	select {
	case <-opened:
	case <-t.C:
	case <-p.ctx.Done():
	}
	return nil
}

func (p *peer) initialize(msg *jsonrpc.Message) {
	reply := engine.Failed(msg.ID)
	defer func() { p.write(reply.Append(nil)) }() // a handler may end its goroutine
	var sess *engine.Session
	sess, reply = p.s.Engine.Initialize(p.ctx, msg, engine.Caller{Principal: p.s.Principal, Alone: p.s.Alone}, nil)
	if sess != nil {
		sess.Events = &exchange{p: p}
		p.mu.Lock()
		p.sess = sess
		p.mu.Unlock()
		p.s.Tap.Frame(sess.Peer.Opened())
		p.s.Engine.Opened(sess)
	}
}

// begin registers a request as in flight, or refuses it.
func (p *peer) begin(msg *jsonrpc.Message) (*exchange, *engine.Reply) {
	refuse := func(code int, text string) *engine.Reply {
		return &engine.Reply{ID: msg.ID, Err: &jsonrpc.Error{Code: code, Message: text}, Refused: true}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return nil, refuse(jsonrpc.CodeInternal, ErrShutdown.Error())
	}
	if _, ok := p.inflight[msg.ID]; ok {
		return nil, refuse(jsonrpc.CodeInvalidRequest, "a request with this id is still in progress")
	}
	if p.busy >= p.s.Concurrent {
		return nil, refuse(jsonrpc.CodeInternal, fmt.Sprintf("more than %d requests in progress on one connection (Limits.Concurrent); wait for some to end", p.s.Concurrent))
	}
	x := &exchange{p: p, msg: *msg, listen: msg.Method == revision.MethodListen}
	x.ctx.Init(p.ctx, nil)
	if p.s.Tap.On() {
		x.ctx.Caused(p.s.Tap.Conn, msg.ID)
	}
	p.inflight[msg.ID] = x
	p.busy++
	p.running++
	return x, nil
}

// free makes the id of a request free for another. It is called before the answer is sent, because
// the peer may reuse the id as soon as it has the answer.
func (p *peer) free(id jsonrpc.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inflight, id)
}

// end releases the place of a request under Concurrent.
func (p *peer) end(x *exchange) {
	x.ctx.End()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	p.ended()
}

// ended decrements running; mu is held.
func (p *peer) ended() {
	if p.running--; p.running == 0 && p.quiet != nil {
		close(p.quiet)
		p.quiet = nil
	}
}

// serve runs one request, whose bytes are in buf, and writes its answer.
func (p *peer) serve(x *exchange, buf *[]byte) {
	begun := time.Now()
	var reply engine.Reply
	defer func() { // a handler may end its goroutine
		p.conclude(x, &reply)
		p.end(x)
		buffer.Put(buf)
	}()
	p.answer(x, &reply)
	if !x.listen && time.Since(begun) > quickTime {
		p.slow.Store(slowRun)
	}
}

// conclude sends the answer to a request, if it is wanted, and releases it.
func (p *peer) conclude(x *exchange, reply *engine.Reply) {
	p.free(x.msg.ID)
	if !x.finish() {
		reply.Drop()
	} else {
		if x.listen && x.ctx.Err() != nil {
			// The end of a subscription on the server's side is announced twice.
			p.write(jsonrpc.AppendNotification(nil, revision.NoteCancelled, requestID(x.msg.ID)))
		}
		out := buffer.Get()
		*out = reply.Append(*out)
		var err error
		if x.turn != nil {
			err = x.turn.answer(*out)
		} else {
			err = p.write(*out)
		}
		if err != nil {
			reply.Drop()
		}
		buffer.Put(out)
	}
	reply.Release()
}

// answer determines the era of a request and serves it (VER-26, era table of the server).
func (p *peer) answer(x *exchange, reply *engine.Reply) {
	msg := &x.msg
	e := p.s.Engine
	if engine.IsModern(msg) {
		version, refused := e.Peer(&x.ctx, msg, p.s.Principal)
		if refused != nil {
			*reply = *refused
			return
		}
		e.Modern(&x.ctx, msg, version, nil, x, reply)
		return
	}
	if sess := p.session(); sess != nil {
		e.Legacy(&x.ctx, sess, msg, nil, x, reply)
		return
	}
	if msg.Method == revision.MethodPing && revision.Latest(e.Revisions, true) != nil {
		*reply = engine.Reply{ID: msg.ID, Result: json.RawMessage(`{}`)}
		return
	}
	*reply = engine.Reply{ID: msg.ID, Refused: true, Err: &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidParams,
		Message: fmt.Sprintf("%.100q came before initialize and without _meta member %q; this server speaks %s",
			msg.Method, engine.MetaVersion, strings.Join(revision.Names(e.Revisions), ", ")),
	}}
}

func (p *peer) response(msg *jsonrpc.Message) {
	p.mu.Lock()
	ch := p.pending[msg.ID]
	delete(p.pending, msg.ID)
	p.mu.Unlock()
	if ch == nil {
		p.s.Logger.Debug("response to an unknown request", "id", msg.ID.String())
		return
	}
	ch <- msg.Clone()
}

func (p *peer) notification(msg *jsonrpc.Message) {
	switch msg.Method {
	case revision.NoteCancelled:
		raw, _ := msg.Param("requestId")
		id, err := jsonrpc.ParseID(raw)
		if err != nil {
			return // malformed cancellations are ignored (CANC)
		}
		p.mu.Lock()
		x := p.inflight[id]
		p.mu.Unlock()
		if x != nil {
			cause := errCancelled
			if raw, ok := msg.Param("reason"); ok {
				if reason, err := jsonx.Unquote(raw); err == nil && reason != "" {
					cause = fmt.Errorf("%w: %q", errCancelled, reason[:min(len(reason), maxReason)])
				}
			}
			p.s.Logger.Debug("call cancelled", "id", id.String(), "err", cause)
			x.done.Store(true)
			x.ctx.Cancel(cause)
		}
	case revision.NoteInitialized:
		p.announce()
	case revision.NoteRootsChanged:
		if sess := p.session(); sess != nil {
			sess.RootsChanged(p.s.Engine)
		}
	}
}

// announce sends list changes to a legacy session from now on.
func (p *peer) announce() {
	ctx, cancel := context.WithCancelCause(p.ctx)
	p.mu.Lock()
	sess := p.sess
	if sess == nil || p.changes != nil || p.down {
		p.mu.Unlock()
		cancel(nil)
		return
	}
	p.changes = cancel
	p.mu.Unlock()
	var once sync.Once
	ready := make(chan struct{})
	p.start(func() {
		defer once.Do(func() { close(ready) })
		defer cancel(nil)
		err := sess.Listen(ctx, p.s.Engine, engine.ListChanges, sess.Events, func() { once.Do(func() { close(ready) }) })
		if err != nil && ctx.Err() == nil {
			p.s.Logger.Debug("no list changes", "err", err)
		}
	})
	// The client must get every change after its next list request, so the next frame waits, but
	// not long for a slow server behind this one.
	t := time.NewTimer(announceTime)
	defer t.Stop()
	select {
	case <-ready:
	case <-t.C:
	}
}

// endListens ends the subscriptions, which do not end by themselves.
func (p *peer) endListens(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes != nil {
		p.changes(cause)
	}
	for _, x := range p.inflight {
		if x.listen {
			x.ctx.Cancel(cause)
		}
	}
}

// write sends a frame. A failed connection ends the reading too, which reports the error.
func (p *peer) write(frame []byte) error {
	return p.failed(p.conn.Write(frame))
}

// failed handles the outcome of a write.
func (p *peer) failed(err error) error {
	if err != nil {
		p.cancel(fmt.Errorf("%w: %w", errGone, err))
		p.close()
	}
	return err
}
