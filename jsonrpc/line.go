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
// Read accepts CRLF, skips lines of nothing but white space, and accepts a last line without a
// newline. A frame over maxFrame bytes is refused; zero means 16 MiB. A frame that has not ended
// after [EndlessFrame] times as many bytes ends the connection with an [*EndlessFrameError].
//
// Write removes newlines inside the frame, which are white space in JSON, and hands the frame and
// its newline to w in one Write, or in two if it is over 64 KiB. Frames that arrive during a
// write are sent together in the next one; when they exceed 256 KiB, further writers wait. After
// a failed write the peer may have half a frame, so all later writes return the same error.
// Writing to a standard output without a reader kills a Go program, unless it handles SIGPIPE
// with os/signal.
//
// Close calls closer once, which must unblock a Read of r and a Write of w. A nil closer means
// that nothing can unblock them, as for the standard streams of the process: a Read and a Write
// under way then return [ErrClosed] when r and w return.
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
	if f, ok := w.(file); ok && f.SetWriteDeadline(time.Time{}) == nil {
		c.file = &deadlineFile{file: f}
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

// lineIn is the reading half of a line connection.
type lineIn struct {
	r    io.Reader
	buf  []byte // buf[at:end] was read and is not taken yet
	at   int
	end  int
	err  error // of r, returned when nothing is left
	max  int   // bytes of a frame
	done chan struct{}

	skips bool // the rest of a line that is too long must be skipped
	over  int  // bytes of that line, and of the lines before it that were not frames either
}

// Ready reports whether a Read would return at once. Only the goroutine that reads may call it.
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

// blank reports whether a line has only white space.
func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// line appends the next line to buf, without its end. If there is a line to return before an
// error of the reader, the next call returns the error.
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
			return nil, c.tooLarge(buf) // now, because the rest of it may never come
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

// fillLong reads the next bytes of a long line directly into buf; bytes after the end of the line
// go to the read buffer.
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

// longRead bounds one read of a long line: the capacity of a pipe on Linux, in bytes.
const longRead = 64 << 10

// frame returns a line as a frame, without a CR at its end.
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

// tooLarge returns the error for a line that begins with head and is over the limit. A line that is
// not JSON counts towards the bound of an endless frame, because a peer that floods its output may
// end a line now and then with an answer.
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

// lineOut is the writing half. The writer that finds it idle writes at once, without a copy to
// another goroutine. Writers that find it busy add their frames to a batch, and one of them
// writes the batch when its turn comes.
type lineOut struct {
	w    io.Writer
	file *deadlineFile // w, or nil if a write to it cannot be given up
	done <-chan struct{}
	own  []byte // staged frames, guarded by mu while the wire is idle; while it is busy they belong to the writer

	mu   sync.Mutex
	busy bool       // guarded by mu; a writer writes, or its turn has come
	next *lineBatch // guarded by mu; written when the write under way ends
	err  error      // guarded by mu; of the first write that failed
}

// stageBytes bounds the frames that Stage holds back.
const stageBytes = 32 << 10

// Stage holds a frame back until the next Write or Flush, which must follow. It returns false,
// and does not take the frame, when it already holds stageBytes or a write has failed. If it takes the frame, it calls
// before, if that is not nil, before anybody can send the frame, in the order of the frames.
func (o *lineOut) Stage(frame []byte, before func()) (held bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.busy && o.full(frame) || !o.busy && len(o.own)+len(frame) >= stageBytes {
		return false
	}
	if before != nil {
		before()
	}
	if o.busy {
		o.join(frame)
	} else {
		o.own = appendFrame(o.own, frame)
	}
	return true
}

// Flush writes the staged frames. The context bounds Flush as it bounds WriteContext; see [Conn].
func (o *lineOut) Flush(ctx context.Context) (sent bool, err error) {
	o.mu.Lock()
	switch {
	case o.next != nil:
		b := o.next
		o.mu.Unlock()
		return o.wait(ctx, b)
	case o.busy || len(o.own) == 0: // another writer has taken the frames
		err := o.err
		o.mu.Unlock()
		return err == nil, err
	}
	o.busy = true
	o.mu.Unlock()
	return o.writeOwn(ctx, nil)
}

// writeOwn writes the staged frames and then frame, if it is not empty. The caller has found the
// wire idle.
func (o *lineOut) writeOwn(ctx context.Context, frame []byte) (sent bool, err error) {
	if len(frame) > longFrame && !broken(frame) {
		return o.put(ctx, nil, o.own, frame, []byte("\n"))
	}
	if frame != nil {
		o.own = appendFrame(o.own, frame)
	}
	return o.put(ctx, nil, o.own)
}

// longFrame is the size in bytes over which a frame is written without a copy.
const longFrame = 64 << 10

// broken reports whether a frame has raw line breaks.
func broken(frame []byte) bool {
	return bytes.IndexByte(frame, '\n') >= 0 || bytes.IndexByte(frame, '\r') >= 0
}

// lineBatch holds frames that wait to be written together.
type lineBatch struct {
	buf   []byte
	turn  chan struct{} // capacity 1; the receiver must write the batch
	taken chan struct{} // closed when the batch takes no more frames
	done  chan struct{} // closed when the batch was written
	err   error         // of the write; read after done
}

func (o *lineOut) Write(frame []byte) error {
	_, err := o.WriteContext(context.Background(), frame)
	return err
}

// WriteContext is Write bounded by ctx; see [Conn].
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

// join adds a frame to the batch that is written next and returns the batch, or nil if it is
// full. The wire must be busy and mu held.
func (o *lineOut) join(frame []byte) *lineBatch {
	if o.full(frame) {
		return nil
	}
	if o.next == nil {
		o.next = &lineBatch{turn: make(chan struct{}, 1), taken: make(chan struct{}), done: make(chan struct{})}
	}
	b := o.next
	b.buf = appendFrame(b.buf, frame)
	return b
}

// full reports whether the batch that is written next has no room for a frame. Mu must be held.
func (o *lineOut) full(frame []byte) bool {
	return o.next != nil && len(o.next.buf) > 0 && len(o.next.buf)+len(frame) > writeAhead
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

// patience bounds the write of a caller whose context can end. After it, a goroutine finishes the
// write, because the peer is slow, or does not read at all.
const patience = 10 * time.Millisecond

// put writes parts, which are those of b or, if b is nil, the writer's own, and passes the turn
// on.
func (o *lineOut) put(ctx context.Context, b *lineBatch, parts ...[]byte) (sent bool, err error) {
	for i, p := range parts {
		var n int
		apart := false
		switch {
		case ctx == context.Background():
			n, err = o.w.Write(p)
		case o.file != nil: // ctx matters only if this takes long
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

// putApart is put on a goroutine, which ends when the peer has read, or at Close.
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

// pass ends a write, of b or of the writer's own frames, and gives the turn to the next batch. It
// returns the error for the writer.
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
		o.next.turn <- struct{}{} // never blocks, because a batch has one turn
	}
	return err
}

func appendFrame(dst, frame []byte) []byte {
	return append(jsonx.AppendLine(dst, frame), '\n')
}
