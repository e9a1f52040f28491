package jsonrpc

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// pipeFrames is the number of frames that a [Pipe] holds in each direction.
const pipeFrames = 16

// Pipe returns the two ends of a connection in memory. Each direction holds up to 16 frames; a
// writer then waits until the peer reads or either end is closed. After one end is closed, the
// other still reads the frames written before, then io.EOF, and its Write fails with an error
// that wraps io.ErrClosedPipe.
//
// A Pipe starts no goroutine and waits only on channels, so it works in a synctest bubble.
func Pipe() (a, b Conn) {
	ab, ba := newPipeQueue(), newPipeQueue()
	x := &pipeEnd{in: ba, out: ab, done: make(chan struct{})}
	y := &pipeEnd{in: ab, out: ba, done: make(chan struct{})}
	x.peerDone, y.peerDone = y.done, x.done
	return x, y
}

// pipeQueue is one direction: one end writes frames and the other reads them; spare holds their
// buffers for later writes.
type pipeQueue struct{ frames, spare chan []byte }

func newPipeQueue() pipeQueue {
	return pipeQueue{make(chan []byte, pipeFrames), make(chan []byte, pipeFrames)}
}

// spareBytes bounds the size of a buffer that is kept.
const spareBytes = 64 << 10

type pipeEnd struct {
	in, out  pipeQueue
	close    sync.Once
	done     chan struct{} // closed by Close
	peerDone chan struct{}
}

func (p *pipeEnd) Read(buf []byte) ([]byte, error) {
	select {
	case <-p.done:
		return nil, ErrClosed
	default:
	}
	select {
	case f := <-p.in.frames:
		return p.take(buf, f), nil
	case <-p.done:
		return nil, ErrClosed
	case <-p.peerDone:
	}
	select {
	case f := <-p.in.frames: // written before the peer closed
		return p.take(buf, f), nil
	default:
		return nil, io.EOF
	}
}

func (p *pipeEnd) take(buf, frame []byte) []byte {
	buf = append(buf[:0], frame...)
	if cap(frame) <= spareBytes {
		select {
		case p.in.spare <- frame:
		default:
		}
	}
	return buf
}

func (p *pipeEnd) Write(frame []byte) error {
	_, err := p.WriteContext(context.Background(), frame)
	return err
}

// WriteContext is Write bounded by ctx; see [Conn].
func (p *pipeEnd) WriteContext(ctx context.Context, frame []byte) (sent bool, err error) {
	if err := p.gone(); err != nil {
		return false, err
	}
	var f []byte
	select {
	case f = <-p.out.spare:
	default:
	}
	f = append(f[:0], frame...)
	select {
	case p.out.frames <- f:
		return true, nil
	default: // it has to wait
	}
	select {
	case p.out.frames <- f:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-p.done:
	case <-p.peerDone:
	}
	return false, p.gone()
}

// gone returns the reason why nothing can be written any more, or nil.
func (p *pipeEnd) gone() error {
	select {
	case <-p.done:
		return ErrClosed
	default:
	}
	select {
	case <-p.peerDone:
		return fmt.Errorf("the peer closed the connection: %w", io.ErrClosedPipe)
	default:
		return nil
	}
}

// Transport returns the name of the transport in recordings.
func (p *pipeEnd) Transport() string { return "memory" }

func (p *pipeEnd) Close() error {
	p.close.Do(func() { close(p.done) })
	return nil
}
