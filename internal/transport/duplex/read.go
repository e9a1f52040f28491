package duplex

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// Requests are served on the goroutine that has read them, which saves a switch to another. A
// slow request must not delay others: after guardTime another goroutine takes over the reading,
// and while requests are slow each gets a goroutine of its own at once.
const (
	guardTime = 100 * time.Microsecond
	quickTime = 50 * time.Microsecond // of a request that does not need a goroutine of its own
	slowRun   = 8                     // requests after a slow one that are treated as slow
)

// stager is a Conn that can hold frames back, so that several are sent in one write.
type stager interface {
	Ready() bool // a Read would return at once
	Stage(frame []byte, before func()) (held bool)
	Flush(ctx context.Context) (sent bool, err error)
}

// turn is the right of one goroutine to read. It can pass to another one while its owner serves a
// request.
type turn struct {
	p     *peer
	state atomic.Int32
	guard *time.Timer
}

const (
	reading int32 = iota
	working
	looking // serving, and needs the wire for a moment
	passed  // the owner no longer reads
)

// lead reads and serves until the wire ends or the turn has passed to another goroutine.
func (p *peer) lead() {
	t := &turn{p: p}
	t.guard = time.AfterFunc(time.Hour, t.pass)
	defer t.guard.Stop()
	lim := jsonrpc.Limits{MaxDepth: p.s.MaxDepth}
	for {
		if p.staged.Load() && !p.stager.Ready() {
			p.staged.Store(false)
			p.mu.Lock()
			p.running++ // the end of the wire, read by another goroutine, waits for it
			p.mu.Unlock()
			if !t.work(p.flushStaged) {
				return
			}
		}
		buf := buffer.Get()
		frame, err := p.conn.Read(*buf)
		*buf = frame
		var big *jsonrpc.FrameTooLargeError
		var x *exchange
		var refusal []byte
		switch {
		case errors.As(err, &big):
			refusal = jsonrpc.AppendError(nil, jsonrpc.ID{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()})
		case err != nil:
			p.read <- err
			return
		case jsonrpc.IsBatch(frame):
			refusal = p.batch(buf, lim)
		default:
			// The turn does not pass before the frame is handled: later frames, and the end of
			// the wire, rely on that.
			if x, refusal = p.message(frame, lim); x == nil {
				buffer.Put(buf)
			}
		}
		if x == nil && refusal == nil {
			continue
		}
		ours := t.work(func() {
			if x != nil {
				p.dispatch(t, x, buf)
			} else {
				p.write(refusal)
			}
		})
		if !ours {
			return
		}
	}
}

// dispatch serves a request here, or on a goroutine of its own.
func (p *peer) dispatch(t *turn, x *exchange, buf *[]byte) {
	switch x.msg.Method {
	case revision.MethodListen, revision.MethodSubscribe, revision.MethodTaskResult: // these wait for other events
		go p.serve(x, buf)
		return
	}
	if p.slow.Load() > 0 {
		p.slow.Add(-1)
		go p.serve(x, buf)
		return
	}
	x.turn = t
	p.serve(x, buf)
}

// work runs f, which may take time. It returns false if the turn has passed in the meantime.
func (t *turn) work(f func()) bool {
	t.state.Store(working)
	t.guard.Reset(guardTime)
	defer t.pass() // if f ends the goroutine
	f()
	t.guard.Stop()
	return t.state.CompareAndSwap(working, reading)
}

// answer writes the answer to a request that the owner of the turn serves. If the next request is
// there already, the answer is sent together with the next one.
func (t *turn) answer(frame []byte) error {
	p := t.p
	if !t.another() || !p.stager.stage(frame, trace.Cause{}) {
		return p.write(frame)
	}
	p.staged.Store(true)
	if t.state.Load() == passed { // perhaps before the new reader could see it
		return p.flush()
	}
	return nil
}

// flushStaged is flush for a goroutine that counts as running.
func (p *peer) flushStaged() {
	p.flush()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended()
}

// flush writes the frames that are held back.
func (p *peer) flush() error {
	_, err := p.stager.Flush(context.Background())
	return p.failed(err)
}

// another reports whether another frame is there already, and the turn has not passed.
func (t *turn) another() bool {
	if t.p.stager == nil || !t.state.CompareAndSwap(working, looking) {
		return false
	}
	ready := t.p.stager.Ready()
	t.state.Store(working)
	return ready
}

// pass lets another goroutine read, if the owner of the turn is serving.
func (t *turn) pass() {
	for !t.state.CompareAndSwap(working, passed) {
		if t.state.Load() != looking {
			return
		}
		runtime.Gosched()
	}
	go t.p.lead()
}
