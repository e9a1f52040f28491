package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// ErrDropped is wrapped by the error of [Writer.Err] when frames are missing from the trace
// because its sink was slower than the wire.
var ErrDropped = errors.New("trace: frames dropped")

// ErrClosed is returned by [Writer.Flush] after [Writer.Close].
var ErrClosed = errors.New("trace: the writer is closed")

const (
	defaultQueue    = 1024
	defaultMaxBytes = 64 << 20
	defaultMaxWait  = 50 * time.Millisecond
	defaultMaxFrame = 16 << 20
	// Bounds the time that the sink may take for the queue.
	closeGrace = 5 * time.Second
)

// WriterOptions configures a [Writer]. Nil and the zero value mean defaults.
type WriterOptions struct {
	// Redactor replaces secrets. Nil means NewRedactor(nil).
	Redactor *Redactor

	// OmitTime leaves out the time and the size of every frame, for fixtures. Otherwise a frame
	// without them gets the time of its Record and its length.
	OmitTime bool

	// MaxQueued bounds the frames that wait for the sink. Zero means 1024.
	MaxQueued int

	// MaxQueuedBytes bounds the bytes of these frames. Zero means 64 MiB. One frame of any length
	// may always wait.
	MaxQueuedBytes int64

	// MaxWait bounds the time that Record waits for room in the queue before it drops the frame.
	// Zero means 50 ms; negative means no wait. After a drop, Record does not wait at all until the
	// sink has taken a frame.
	MaxWait time.Duration

	// MaxFrame bounds the bytes of a message that are written; the rest is cut. Zero means 16
	// MiB. A cut message can be read but not replayed.
	MaxFrame int

	// OnFault is called with the first loss of a frame, because the sink failed or is slow. It runs
	// on the goroutine of Record or of the Writer and must not call the Writer. It may be nil; see
	// [Writer.Err].
	OnFault func(error)
}

// Writer records frames to a sink, redacted. It owns one goroutine, started
// by [NewWriter] and finished when [Writer.Close] returns, except when the
// sink itself never returns from a Write.
type Writer struct {
	omitTime bool
	maxCount int
	maxBytes int64
	maxWait  time.Duration
	onFault  func(error)
	take     func(Frame) error // the sink; called by one goroutine
	finished chan struct{}     // closed when the goroutine ends

	mu      sync.Mutex
	queue   []Frame          // guarded by mu
	shares  map[string]int64 // guarded by mu; of the queue, by connection: see share
	queued  uint64           // guarded by mu; frames that entered queue, without those dropped from it
	written uint64           // guarded by mu; frames handed to the sink
	bytes   int64            // guarded by mu; of the frames queued and not written
	lost    int              // guarded by mu; dropped since the last frame queued
	dropped int              // guarded by mu; dropped in all
	stuckAt uint64           // guarded by mu; written+1 at the last drop: Record waits only if it has changed
	noisy   string           // guarded by mu; the connection with most of the queue at the first drop
	closed  bool             // guarded by mu
	err     error            // guarded by mu; first error of the sink
	changed chan struct{}    // guarded by mu; closed by the next change; nil: nobody waits
}

// NewWriter returns a writer to w; opts may be nil. w is used by one goroutine
// at a time and is not closed. NewWriter panics if w is nil.
func NewWriter(w io.Writer, opts *WriterOptions) *Writer {
	if w == nil {
		panic(errors.New("trace: NewWriter: the io.Writer is nil; give the destination of the frames"))
	}
	var o WriterOptions
	if opts != nil {
		o = *opts
	}
	if o.Redactor == nil {
		o.Redactor = NewRedactor(nil)
	}
	if o.MaxFrame <= 0 {
		o.MaxFrame = defaultMaxFrame
	}
	const keep = 1 << 20 // a longer line does not pin its buffer
	var buf []byte
	return newWriter(o, func(f Frame) error {
		buf = append(cut(o.Redactor.Frame(f), o.MaxFrame).Append(buf[:0]), '\n')
		_, err := w.Write(buf)
		if cap(buf) > keep {
			buf = nil
		}
		if err != nil {
			return fmt.Errorf("write trace: %w", err)
		}
		return nil
	})
}

// newWriter returns a writer that gives each frame to a function, which may keep it.
func newWriter(o WriterOptions, take func(Frame) error) *Writer {
	if o.MaxQueued <= 0 {
		o.MaxQueued = defaultQueue
	}
	if o.MaxQueuedBytes <= 0 {
		o.MaxQueuedBytes = defaultMaxBytes
	}
	if o.MaxWait == 0 {
		o.MaxWait = defaultMaxWait
	}
	t := &Writer{
		omitTime: o.OmitTime, take: take, shares: map[string]int64{},
		maxCount: o.MaxQueued, maxBytes: o.MaxQueuedBytes, maxWait: o.MaxWait, onFault: o.OnFault,
		finished: make(chan struct{}),
	}
	go t.writeLoop()
	return t
}

// Record queues a frame to be written. If the queue is full, it drops a frame of the connection that has
// most of the queue. It keeps no reference to the frame's Msg, Raw or HTTP, and
// waits at most [WriterOptions.MaxWait]. [Writer.Err] and [Writer.Close] return its errors. After
// Close it does nothing.
func (t *Writer) Record(f Frame) {
	if f.Time.IsZero() {
		f.Time = time.Now()
	}
	if f.Size == 0 {
		f.Size = len(f.Msg) + len(f.Raw)
	}
	if t.omitTime {
		f.Time, f.Size = time.Time{}, 0
	}
	f.Msg, f.Raw, f.Args = bytes.Clone(f.Msg), bytes.Clone(f.Raw), slices.Clone(f.Args)
	if f.HTTP != nil {
		h := *f.HTTP
		if f.HTTP.Headers != nil {
			h.Headers = make(map[string][]string, len(f.HTTP.Headers))
			for name, list := range f.HTTP.Headers {
				h.Headers[name] = slices.Clone(list)
			}
		}
		f.HTTP = &h
	}

	if fault := t.enqueue(f); fault != nil && t.onFault != nil {
		t.onFault(fault)
	}
}

// enqueue queues a frame or counts it as lost. It returns the first fault.
func (t *Writer) enqueue(f Frame) (fault error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.full(f) && t.maxWait > 0 && t.stuckAt != t.written+1 {
		timeout := time.NewTimer(t.maxWait)
		defer timeout.Stop()
		for waiting := true; waiting && t.full(f); {
			changed := t.change()
			t.mu.Unlock()
			select {
			case <-changed:
			case <-timeout.C:
				waiting = false
			}
			t.mu.Lock()
		}
	}
	before := t.dropped
	for t.full(f) && t.makeRoom(f) {
	}
	switch {
	case t.closed:
	case t.err != nil:
		t.dropped++
		return nil
	case t.full(f):
		if t.dropped == 0 {
			t.noisy = t.loudest()
		}
		t.lost++
		t.dropped++
		t.stuckAt = t.written + 1
	default:
		f.Lost += t.lost
		t.lost = 0
		t.queue = append(t.queue, f)
		t.queued++
		t.bytes += size(f)
		t.shares[f.Conn] += t.share(f)
		t.signal()
	}
	if before == 0 && t.dropped > 0 {
		fault = fmt.Errorf("%w: %s", ErrDropped, t.slow())
	}
	return fault
}

// makeRoom drops the newest queued frame of the connection with most of the queue, if that has still
// more of it afterwards than the connection of f would have. It reports whether it did. The caller
// holds mu.
func (t *Writer) makeRoom(f Frame) bool {
	loudest := t.loudest()
	if loudest == f.Conn {
		return false
	}
	for i, out := range slices.Backward(t.queue) {
		if out.Conn != loudest {
			continue
		}
		if t.shares[loudest]-t.share(out) < t.shares[f.Conn]+t.share(f) {
			return false
		}
		if t.dropped == 0 {
			t.noisy = loudest
		}
		t.queue = slices.Delete(t.queue, i, i+1)
		if i < len(t.queue) {
			t.queue[i].Lost += out.Lost + 1
		} else {
			t.lost += out.Lost + 1
		}
		t.dropped++
		t.stuckAt = t.written + 1
		t.queued--
		t.release(out)
		return true
	}
	return false
}

// share returns the part of the queue that a frame takes: its bytes, and those that are a frame's when
// the queue is full of small ones. The caller holds mu.
func (t *Writer) share(f Frame) int64 { return size(f) + t.maxBytes/int64(t.maxCount) }

// release gives back the part of the queue that a frame takes. The caller holds mu.
func (t *Writer) release(f Frame) {
	t.bytes -= size(f)
	if t.shares[f.Conn] -= t.share(f); t.shares[f.Conn] <= 0 {
		delete(t.shares, f.Conn)
	}
}

// loudest returns the connection that has most of the queue. The caller holds mu.
func (t *Writer) loudest() (conn string) {
	most := int64(0)
	for name, share := range t.shares {
		if share > most {
			conn, most = name, share
		}
	}
	return conn
}

// slow says why frames are dropped. The caller holds mu.
func (t *Writer) slow() string {
	if t.noisy == "" {
		return "the sink is slower than the wire"
	}
	return "the sink is slower than the wire; most frames that waited were of " + t.noisy
}

// full reports whether f must wait. The caller holds mu.
func (t *Writer) full(f Frame) bool {
	n := t.waiting()
	return !t.closed && t.err == nil && n > 0 && (n >= t.maxCount || t.bytes+size(f) > t.maxBytes)
}

// waiting counts the frames not yet with the sink. The caller holds mu.
func (t *Writer) waiting() int { return int(t.queued - t.written) }

// size returns the memory of a queued frame in bytes. Peers choose the length of most of it.
func size(f Frame) int64 {
	n := len(f.Msg) + len(f.Raw) + len(f.Event) + len(f.Note) + len(f.For.Conn) + len(f.For.ID)
	for _, arg := range f.Args {
		n += len(arg)
	}
	if f.HTTP != nil {
		n += len(f.HTTP.Path)
		for name, list := range f.HTTP.Headers {
			n += len(name)
			for _, v := range list {
				n += len(v)
			}
		}
	}
	return int64(n)
}

// signal wakes the waiters for a change. The caller holds mu.
func (t *Writer) signal() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// change returns a channel that the next change closes. The caller holds mu.
func (t *Writer) change() <-chan struct{} {
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}

// writeLoop writes the queue, a batch at a time, until the writer is closed and the queue is
// empty, or the sink has failed.
func (t *Writer) writeLoop() {
	defer close(t.finished)
	for {
		batch := t.next()
		if batch == nil {
			return
		}
		for _, f := range batch {
			err := t.take(f)
			t.mu.Lock()
			t.written++
			t.release(f)
			if err != nil {
				t.err = err
				t.dropped += t.waiting() + 1
				t.written, t.bytes, t.queue, t.shares = t.queued, 0, nil, nil
			}
			fault := t.err
			t.signal()
			t.mu.Unlock()
			if err != nil {
				if t.onFault != nil {
					t.onFault(fault)
				}
				return
			}
		}
	}
}

// cut bounds the bytes of a message, which must be redacted already.
func cut(f Frame, most int) Frame {
	body := []byte(f.Msg)
	if len(body) == 0 {
		body = f.Raw
	}
	if len(body) <= most {
		return f
	}
	n := most
	for i := 0; i < utf8.UTFMax && n > 0 && !utf8.RuneStart(body[n]); i++ {
		n--
	}
	f.Msg, f.Raw, f.Cut = nil, body[:n], f.Cut+len(body)-n
	return f
}

// next waits for frames and returns the first that are queued, or nil when closed.
func (t *Writer) next() []Frame {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) == 0 && !t.closed {
		changed := t.change()
		t.mu.Unlock()
		<-changed
		t.mu.Lock()
	}
	const most = 64 // the others stay in the queue, where makeRoom finds them
	if len(t.queue) <= most {
		batch := t.queue
		t.queue = nil
		return batch
	}
	batch := slices.Clone(t.queue[:most])
	t.queue = slices.Delete(t.queue, 0, most)
	return batch
}

// Flush waits until the sink has the frames recorded before the call, at most five seconds. It
// returns [Writer.Err] or, if it gave up, an error that says so.
func (t *Writer) Flush() error {
	timeout := time.NewTimer(closeGrace)
	defer timeout.Stop()
	t.mu.Lock()
	for target := t.queued; t.written < min(target, t.queued); {
		changed, n := t.change(), min(target, t.queued)-t.written
		t.mu.Unlock()
		select {
		case <-changed:
		case <-timeout.C:
			return fmt.Errorf("flush trace: the sink did not take %d frames within %v", n, closeGrace)
		}
		t.mu.Lock()
	}
	closed := t.closed
	t.mu.Unlock()
	if err := t.Err(); err != nil || !closed {
		return err
	}
	return ErrClosed
}

// Err returns the errors so far: the first error of the sink, and [ErrDropped] with the number of
// missing frames.
func (t *Writer) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.err != nil:
		return fmt.Errorf("%w; %w: %d", t.err, ErrDropped, t.dropped)
	case t.dropped > 0:
		return fmt.Errorf("%w: %d: %s", ErrDropped, t.dropped, t.slow())
	}
	return nil
}

// Dropped returns the number of frames that are missing so far.
func (t *Writer) Dropped() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropped
}

// Close writes the queue and returns [Writer.Err]. It waits for the sink at most five seconds,
// does not close it, and may be called more than once.
func (t *Writer) Close() error {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		t.signal()
	}
	t.mu.Unlock()
	timeout := time.NewTimer(closeGrace)
	defer timeout.Stop()
	select {
	case <-t.finished:
		return t.Err()
	case <-timeout.C:
		t.mu.Lock()
		n := t.waiting()
		t.mu.Unlock()
		return errors.Join(t.Err(), fmt.Errorf("close trace: the sink did not take %d frames within %v", n, closeGrace))
	}
}
