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
)

// Requests are served on the goroutine that has read them, which costs no switch to
// another. Those that take their time must hold up nothing: after guardTime another
// goroutine takes over the reading, and as long as requests are slow each gets a goroutine
// of its own at once.
const (
	guardTime = 100 * time.Microsecond
	quickTime = 50 * time.Microsecond // of a request that is worth no goroutine
	slowRun   = 8                     // requests after a slow one that are taken for slow
)

// stager is a Conn that can hold frames back, so that several go out in one write.
type stager interface {
	Ready() bool // a Read would return at once
	Stage(frame []byte) (held bool)
	Flush(ctx context.Context) (sent bool, err error)
}

// turn is the right of one goroutine to read. It can pass to another one while its owner
// is at work on what it has read.
type turn struct {
	p     *peer
	state atomic.Int32
	guard *time.Timer
}

const (
	reading int32 = iota
	working
	looking // at work, and needs the wire for a moment
	passed  // the owner does not read any more
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
			p.running++ // the end of the wire, if another goroutine reads that, waits for it
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
			// The turn does not pass before what the frame says is known: what comes after
			// it, the end of the wire too, relies on that.
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
	case revision.MethodListen, revision.MethodSubscribe, revision.MethodTaskResult: // wait for others
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

// work does what may take time. It returns false if the turn has passed meanwhile.
func (t *turn) work(f func()) bool {
	t.state.Store(working)
	t.guard.Reset(guardTime)
	defer t.pass() // if f ends the goroutine
	f()
	t.guard.Stop()
	return t.state.CompareAndSwap(working, reading)
}

// answer writes the answer to a request that the owner of the turn serves. If the next
// request is there already, it waits to go out with the answer to that.
func (t *turn) answer(frame []byte) error {
	p := t.p
	if !t.another() || !p.stager.Stage(frame) {
		return p.write(frame)
	}
	p.staged.Store(true)
	if t.state.Load() == passed { // perhaps before whoever reads now could see it
		return p.flush()
	}
	return nil
}

// flushStaged is flush, for one who counts as running.
func (p *peer) flushStaged() {
	p.flush()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended()
}

// flush writes what is held back.
func (p *peer) flush() error {
	_, err := p.stager.Flush(context.Background())
	return p.failed(err)
}

// another tells whether a further frame is there already, and the turn has not passed.
func (t *turn) another() bool {
	if t.p.stager == nil || !t.state.CompareAndSwap(working, looking) {
		return false
	}
	ready := t.p.stager.Ready()
	t.state.Store(working)
	return ready
}

// pass lets another goroutine read, if the owner of the turn is at work.
func (t *turn) pass() {
	for !t.state.CompareAndSwap(working, passed) {
		if t.state.Load() != looking {
			return
		}
		runtime.Gosched()
	}
	go t.p.lead()
}
