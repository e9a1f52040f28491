package jsonrpc

import (
	"bufio"
	"bytes"
	"io"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

const (
	defaultMaxFrame = 16 << 20
	readBuffer      = 32 << 10
	headBytes       = 512 // of FrameTooLargeError.Head
)

// NewLineConn returns a [Conn] of newline-delimited JSON, as the stdio
// transport uses it, over r and w.
//
// Read accepts CRLF, skips lines of nothing but white space, and takes a last
// line without newline for a frame. A frame over maxFrame bytes is refused;
// zero means 16 MiB.
//
// Write removes newlines inside the frame, which are white space in JSON, and
// hands the frame and its newline to w in one Write. Frames that come while a
// write is under way wait, and go out together in the next one; over 256 KiB
// of them make further writers wait. After a failed write the wire may hold
// half a frame, so all later ones return the same error. Writing to a standard
// output whose reader is gone kills a Go program, unless it asks for SIGPIPE
// with os/signal.
//
// Close calls closer once, which must unblock a Read of r and a Write of w.
// A nil closer says that nothing can, as for the standard streams of the
// process: then r and w are used from two goroutines of the Conn, which Close
// leaves behind until the Read or Write they are in returns.
//
// Specification: 2026-07-28, basic/transports/stdio.mdx (STDIO-26-001); the
// same in all revisions.
func NewLineConn(r io.Reader, w io.Writer, closer func() error, maxFrame int) Conn {
	if maxFrame <= 0 {
		maxFrame = defaultMaxFrame
	}
	done := make(chan struct{})
	if closer == nil {
		r, w = &detachedReader{r: r, done: done}, &detachedWriter{w: w, done: done}
	}
	return &lineConn{
		r:       bufio.NewReaderSize(r, readBuffer),
		max:     maxFrame,
		closer:  closer,
		done:    done,
		lineOut: lineOut{w: w, done: done},
	}
}

type lineConn struct {
	r       *bufio.Reader
	readErr error // what Read returns from now on
	max     int

	closer   func() error
	close    sync.Once
	closeErr error
	done     chan struct{} // closed by Close

	lineOut
}

func (c *lineConn) Close() error {
	c.close.Do(func() {
		close(c.done)
		if c.closer != nil {
			c.closeErr = c.closer()
		}
	})
	return c.closeErr
}

func (c *lineConn) Read(buf []byte) ([]byte, error) {
	for {
		if closed(c.done) {
			return nil, ErrClosed
		}
		if c.readErr != nil {
			return nil, c.readErr
		}
		line, err := c.line(buf[:0])
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimLeft(line, " \t\r")) > 0 {
			return line, nil
		}
		buf = line
	}
}

// line appends the next line to buf, without its end. An error of the reader
// is kept for the next Read when there is a line to return before it.
func (c *lineConn) line(buf []byte) ([]byte, error) {
	for {
		part, err := c.r.ReadSlice('\n')
		if len(buf)+len(part) > c.max+len("\r\n") {
			buf = append(buf, part[:min(len(part), headBytes)]...)
			return nil, c.skip(buf, err)
		}
		buf = append(buf, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			if closed(c.done) {
				err = ErrClosed
			}
			c.readErr = err
			if err != io.EOF || len(buf) == 0 {
				return nil, err
			}
		}
		buf = bytes.TrimSuffix(buf, []byte("\n"))
		buf = bytes.TrimSuffix(buf, []byte("\r"))
		if len(buf) > c.max {
			return nil, c.tooLarge(buf)
		}
		return buf, nil
	}
}

// skip reads to the end of a line that begins with head and is too long; err
// is of the last read.
func (c *lineConn) skip(head []byte, err error) error {
	for err == bufio.ErrBufferFull {
		_, err = c.r.ReadSlice('\n')
	}
	c.readErr = err
	return c.tooLarge(head)
}

func (c *lineConn) tooLarge(head []byte) error {
	return &FrameTooLargeError{Limit: c.max, Head: bytes.Clone(head[:min(len(head), headBytes)])}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// writeAhead bounds the frames that wait for the write under way, in bytes. A
// single frame may be longer.
const writeAhead = 256 << 10

// lineOut is the writing half. The writer that finds it idle writes at once,
// without a copy to another goroutine. Writers that find it busy put their
// frames into one batch, and one of them writes it when its turn comes.
type lineOut struct {
	w    io.Writer
	done <-chan struct{}
	own  []byte // of the writer that found the wire idle

	mu   sync.Mutex
	busy bool       // guarded by mu; somebody writes, or was told that it is its turn
	next *lineBatch // guarded by mu; what goes out when the write under way ends
	err  error      // guarded by mu; of the first write that failed
}

// lineBatch is frames that wait to be written together.
type lineBatch struct {
	buf   []byte
	turn  chan struct{} // capacity 1; whoever receives must write the batch
	taken chan struct{} // closed when the batch takes no more frames
	done  chan struct{} // closed when the batch was written
	err   error         // how that went; read after done
}

func (o *lineOut) Write(frame []byte) error {
	o.mu.Lock()
	for {
		if o.err != nil || closed(o.done) {
			err := o.err
			o.mu.Unlock()
			if closed(o.done) {
				return ErrClosed
			}
			return err
		}
		if !o.busy {
			o.busy = true
			o.mu.Unlock()
			o.own = appendFrame(o.own[:0], frame)
			err := o.write(o.own)
			if cap(o.own) > writeAhead {
				o.own = nil
			}
			o.pass(err)
			return err
		}
		b := o.next
		if b == nil {
			b = &lineBatch{
				turn:  make(chan struct{}, 1),
				taken: make(chan struct{}),
				done:  make(chan struct{}),
			}
			o.next = b
		}
		if len(b.buf) == 0 || len(b.buf)+len(frame) <= writeAhead {
			b.buf = appendFrame(b.buf, frame)
			o.mu.Unlock()
			return o.wait(b)
		}
		o.mu.Unlock()
		select {
		case <-b.taken:
		case <-o.done:
			return ErrClosed
		}
		o.mu.Lock()
	}
}

// wait waits until b is written, or writes it when it is the caller's turn.
func (o *lineOut) wait(b *lineBatch) error {
	select {
	case <-b.done:
		return b.err
	case <-o.done:
		return ErrClosed
	case <-b.turn:
	}
	o.mu.Lock()
	o.next = nil
	b.err = o.err
	o.mu.Unlock()
	close(b.taken)
	if b.err == nil {
		b.err = o.write(b.buf)
	}
	close(b.done)
	o.pass(b.err)
	return b.err
}

// pass ends a write: the next batch has its turn.
func (o *lineOut) pass(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	if o.next == nil {
		o.busy = false
		return
	}
	o.next.turn <- struct{}{} // never blocks: a batch has one turn
}

func (o *lineOut) write(p []byte) error {
	n, err := o.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil && closed(o.done) {
		err = ErrClosed
	}
	return err
}

func appendFrame(dst, frame []byte) []byte {
	return append(jsonx.AppendLine(dst, frame), '\n')
}
