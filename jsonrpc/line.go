package jsonrpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

const (
	defaultMaxFrame = 16 << 20
	readAhead       = 32 << 10
	headBytes       = 512 // of FrameTooLargeError.Head
)

// NewLineConn returns a [Conn] of newline-delimited JSON, as the stdio
// transport uses it, over r and w.
//
// Read accepts CRLF, skips lines of nothing but white space, and takes a last
// line without newline for a frame. A frame over maxFrame bytes is refused;
// zero means 16 MiB. One that has not ended after [EndlessFrame] times as many ends
// the connection: its error names the bytes.
//
// Write removes newlines inside the frame, which are white space in JSON, and
// hands the frame and its newline to w in one Write, or in two if it is over
// 64 KiB. Frames that come while a write is under way wait, and go out together
// in the next one; over 256 KiB of them make further writers wait. After a
// failed write the wire may hold half a frame, so all later ones return the same
// error. Writing to a standard output whose reader is gone kills a Go program,
// unless it asks for SIGPIPE with os/signal.
//
// Close calls closer once, which must unblock a Read of r and a Write of w.
// A nil closer says that nothing can, as for the standard streams of the
// process: then Close leaves a Read and a Write that are under way behind, to
// return [ErrClosed] when r and w let them.
//
// Specification: 2026-07-28, basic/transports/stdio.mdx (STDIO-26-001); the
// same in all revisions.
func NewLineConn(r io.Reader, w io.Writer, closer func() error, maxFrame int) Conn {
	if maxFrame <= 0 {
		maxFrame = defaultMaxFrame
	}
	done := make(chan struct{})
	c := &lineConn{
		lineIn:  lineIn{r: r, buf: make([]byte, readAhead), max: maxFrame, done: done},
		lineOut: lineOut{w: w, done: done},
		closer:  closer,
	}
	if f, ok := w.(*os.File); ok && f.SetWriteDeadline(time.Time{}) == nil {
		c.file = &hurriedFile{File: f}
		c.w = c.file
	}
	return c
}

type lineConn struct {
	lineIn
	lineOut

	closer   func() error
	close    sync.Once
	closeErr error
}

func (c *lineConn) Close() error {
	c.close.Do(func() {
		close(c.lineIn.done)
		if c.closer != nil {
			c.closeErr = c.closer()
		}
	})
	return c.closeErr
}

// lineIn is the reading half.
type lineIn struct {
	r    io.Reader
	buf  []byte // buf[at:end] was read and is not taken yet
	at   int
	end  int
	err  error // of r, for when nothing is left
	max  int   // bytes of a frame
	done chan struct{}

	skips bool // the rest of a line that is too long is to be skipped
	over  int  // bytes of that line, and of those before it that were no frames either
}

// Ready tells whether a Read would return at once. It is called by the goroutine
// that reads.
func (c *lineIn) Ready() bool { return !c.skips && bytes.IndexByte(c.buf[c.at:c.end], '\n') >= 0 }

func (c *lineIn) Read(buf []byte) ([]byte, error) {
	for {
		if closed(c.done) {
			return nil, ErrClosed
		}
		line, err := c.line(buf[:0])
		if err != nil {
			if closed(c.done) {
				err = ErrClosed
			}
			return nil, err
		}
		if !blank(line) {
			return line, nil
		}
		buf = line
	}
}

// blank tells whether a line has nothing but white space.
func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// line appends the next line to buf, without its end. An error of the reader
// is kept for the next call when there is a line to return before it.
func (c *lineIn) line(buf []byte) ([]byte, error) {
	if err := c.skip(); err != nil {
		return nil, err
	}
	for {
		part := c.buf[c.at:c.end]
		if i := bytes.IndexByte(part, '\n'); i >= 0 {
			c.at += i + 1
			return c.frame(append(buf, part[:i]...))
		}
		buf = append(buffer.Grow(buf, len(part)), part...)
		c.at, c.end = 0, 0
		if len(buf) > c.max+len("\r") {
			c.skips = true
			return nil, c.tooLarge(buf) // now, as the rest of it may never come
		}
		if c.err != nil {
			if c.err != io.EOF || len(buf) == 0 {
				return nil, c.err
			}
			return c.frame(buf)
		}
		var ended bool
		if len(buf) < readAhead {
			c.fill()
		} else if buf, ended = c.fillLong(buf); ended {
			return c.frame(buf)
		}
	}
}

// fill reads into the empty buffer.
func (c *lineIn) fill() {
	c.end, c.err = c.r.Read(c.buf)
}

// fillLong reads the next bytes of a long line to where they belong; what comes after
// the end of the line goes to the buffer.
func (c *lineIn) fillLong(buf []byte) (line []byte, ended bool) {
	n := len(buf)
	buf = buffer.Grow(buf, readAhead)
	var got int
	got, c.err = c.r.Read(buf[n:min(cap(buf), n+longRead)])
	buf = buf[:n+got]
	i := bytes.IndexByte(buf[n:], '\n')
	if i < 0 {
		return buf, false
	}
	rest := buf[n+i+1:]
	if len(rest) > len(c.buf) {
		c.buf = make([]byte, longRead)
	}
	c.end = copy(c.buf, rest)
	return buf[:n+i], true
}

// longRead bounds one read of a long line: what a pipe can hold on Linux.
const longRead = 64 << 10

// frame returns a line as a frame, without the CR of its end.
func (c *lineIn) frame(line []byte) ([]byte, error) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > c.max {
		return nil, c.tooLarge(line)
	}
	c.over = 0
	return line, nil
}

// skip reads to the end of a line that is too long.
func (c *lineIn) skip() error {
	for c.skips {
		i := bytes.IndexByte(c.buf[c.at:c.end], '\n')
		switch {
		case i >= 0:
			c.at, c.skips = c.at+i+1, false
			continue
		case c.over/EndlessFrame > c.max:
			c.err = &EndlessFrameError{Limit: c.max, Read: c.over}
		}
		c.at, c.end = 0, 0
		if c.err != nil {
			return c.err
		}
		c.fill()
		c.over += c.end
	}
	return nil
}

// tooLarge is the error for a line that begins so. What is no JSON is no frame: a peer that floods
// its output may end a line now and then, by an answer in the middle of it.
func (c *lineIn) tooLarge(head []byte) error {
	if head[0] == '{' || head[0] == '[' {
		c.over = 0
	}
	c.over += len(head)
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
	file *hurriedFile // w, if a write to it can be given up; else nil
	done <-chan struct{}
	own  []byte // staged frames while the wire is idle, guarded by mu; else of the writer that found it so

	mu   sync.Mutex
	busy bool       // guarded by mu; somebody writes, or was told that it is its turn
	next *lineBatch // guarded by mu; what goes out when the write under way ends
	err  error      // guarded by mu; of the first write that failed
}

// stageBytes bounds the frames that Stage holds back.
const stageBytes = 32 << 10

// Stage holds a frame back until the next Write or Flush, which must follow. It is false, and the
// frame is not taken, when enough is held back or the wire is broken.
func (o *lineOut) Stage(frame []byte) (held bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
		return false
	case o.busy:
		return o.join(frame) != nil
	case len(o.own)+len(frame) >= stageBytes:
		return false
	}
	o.own = appendFrame(o.own, frame)
	return true
}

// Flush writes what is held back, for a caller who waits no longer than ctx lasts, see
// [Conn].
func (o *lineOut) Flush(ctx context.Context) (sent bool, err error) {
	o.mu.Lock()
	switch {
	case o.next != nil:
		b := o.next
		o.mu.Unlock()
		return o.wait(ctx, b)
	case o.busy || len(o.own) == 0: // another writer has taken it along
		err := o.err
		o.mu.Unlock()
		return err == nil, err
	}
	o.busy = true
	o.mu.Unlock()
	return o.writeOwn(ctx, nil)
}

// writeOwn writes what was staged, and then frame if it is not empty, as the one who
// found the wire idle.
func (o *lineOut) writeOwn(ctx context.Context, frame []byte) (sent bool, err error) {
	if len(frame) > longFrame && !broken(frame) {
		return o.put(ctx, nil, o.own, frame, []byte("\n"))
	}
	if frame != nil {
		o.own = appendFrame(o.own, frame)
	}
	return o.put(ctx, nil, o.own)
}

// longFrame is the size over which a frame is written from where it is.
const longFrame = 64 << 10

// broken tells whether a frame has raw line breaks in it.
func broken(frame []byte) bool {
	return bytes.IndexByte(frame, '\n') >= 0 || bytes.IndexByte(frame, '\r') >= 0
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
	_, err := o.WriteContext(context.Background(), frame)
	return err
}

// WriteContext is Write for a caller who waits no longer than ctx lasts, see [Conn].
func (o *lineOut) WriteContext(ctx context.Context, frame []byte) (sent bool, err error) {
	o.mu.Lock()
	for {
		if o.err != nil || closed(o.done) {
			err := o.err
			o.mu.Unlock()
			if closed(o.done) {
				return false, ErrClosed
			}
			return false, err
		}
		if !o.busy {
			o.busy = true
			o.mu.Unlock()
			return o.writeOwn(ctx, frame)
		}
		if b := o.join(frame); b != nil {
			o.mu.Unlock()
			return o.wait(ctx, b)
		}
		taken := o.next.taken
		o.mu.Unlock()
		select {
		case <-taken:
		case <-o.done:
			return false, ErrClosed
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		o.mu.Lock()
	}
}

// join puts a frame into the batch that is written next, and returns that: nil if it is full. The
// wire is busy, and mu is held.
func (o *lineOut) join(frame []byte) *lineBatch {
	if o.next == nil {
		o.next = &lineBatch{turn: make(chan struct{}, 1), taken: make(chan struct{}), done: make(chan struct{})}
	}
	b := o.next
	if len(b.buf) > 0 && len(b.buf)+len(frame) > writeAhead {
		return nil
	}
	b.buf = appendFrame(b.buf, frame)
	return b
}

// wait waits until b is written, or writes it when it is the caller's turn.
func (o *lineOut) wait(ctx context.Context, b *lineBatch) (sent bool, err error) {
	select {
	case <-b.done:
		return b.err == nil, b.err
	case <-o.done:
		return false, ErrClosed
	case <-ctx.Done():
		go o.wait(context.Background(), b) // it may be the one whose turn comes
		return true, context.Cause(ctx)
	case <-b.turn:
	}
	o.mu.Lock()
	o.next = nil
	err = o.err
	o.mu.Unlock()
	close(b.taken)
	if err != nil {
		o.pass(b, err)
		return false, err
	}
	return o.put(ctx, b, b.buf)
}

// patience is how long a writer whose context can end writes itself. A peer that has
// not taken the bytes by then is slow, or does not read at all.
const patience = 10 * time.Millisecond

// put writes the parts of b, or of what the writer has itself if b is nil, and passes
// the turn on.
func (o *lineOut) put(ctx context.Context, b *lineBatch, parts ...[]byte) (sent bool, err error) {
	for i, p := range parts {
		var n int
		apart := false
		switch {
		case ctx == context.Background():
			n, err = o.w.Write(p)
		case o.file != nil: // whether ctx can end matters only if this takes long
			n, err = o.file.writeWithin(p, patience)
			apart = errors.Is(err, os.ErrDeadlineExceeded)
		case ctx.Done() == nil:
			n, err = o.w.Write(p)
		default:
			apart = true // nobody knows how long it will take
		}
		if apart {
			rest := bytes.Join(append([][]byte{p[n:]}, parts[i+1:]...), nil)
			return o.putApart(ctx, b, rest)
		}
		if err == nil && n < len(p) {
			err = io.ErrShortWrite
		}
		if err != nil {
			break
		}
	}
	err = o.pass(b, err)
	return err == nil, err
}

// putApart is put on a goroutine, which ends when the peer has read, or with Close.
func (o *lineOut) putApart(ctx context.Context, b *lineBatch, rest []byte) (sent bool, err error) {
	written := make(chan error, 1)
	go func() {
		_, err := o.put(context.Background(), b, rest)
		written <- err
	}()
	select {
	case err := <-written:
		return err == nil, err
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// pass ends a write, of b or of what the writer had itself, and gives its turn to the
// next batch. It returns what the writer is told.
func (o *lineOut) pass(b *lineBatch, err error) error {
	if err != nil && closed(o.done) {
		err = ErrClosed
	}
	if b != nil {
		b.err = err
		close(b.done)
	} else if o.own = o.own[:0]; cap(o.own) > 2*longFrame {
		o.own = nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	if o.next == nil {
		o.busy = false
	} else {
		o.next.turn <- struct{}{} // never blocks: a batch has one turn
	}
	return err
}

func appendFrame(dst, frame []byte) []byte {
	return append(jsonx.AppendLine(dst, frame), '\n')
}
