package audit

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/trace"
)

// Sync says when a line counts as written.
type Sync int

const (
	SyncGroup Sync = iota // it is on disk; the lines that wait meanwhile go there together
	SyncNone              // the operating system has it, which survives kill -9, and not a power cut
)

// Content says what lines have of the arguments of calls.
type Content int

const (
	ContentDigest   Content = iota // their digest
	ContentRedacted                // also the arguments, redacted, of at most 64 KiB per call
	ContentNone                    // nothing: a digest of few possible arguments can be guessed
)

// Options configure a [Log]. Nil and the zero value mean defaults.
type Options struct {
	// Node names this process in lines. Empty means the name of the machine.
	Node string

	// Arguments says what lines have of the arguments of calls.
	Arguments Content

	// Redactor removes secrets from arguments. Nil means the default one, see
	// [trace.NewRedactor].
	Redactor *trace.Redactor

	// Key signs checkpoints. Nil means none: then a person who can write to the files can change
	// a line and compute all later hashes again.
	Key ed25519.PrivateKey

	// Interval is the maximum time until lines are signed; a checkpoint also stands after 10,000
	// lines, and at the end. Zero means 10 seconds.
	Interval time.Duration

	// Sync says when Write returns.
	Sync Sync

	// MaxBytes is the size at which a file is rotated; at midnight UTC it is too. Zero means
	// 100 MiB.
	MaxBytes int64

	// Shared lets several processes write to the file in turn, each group of lines behind a lock.
	// All must be Shared: while one of them has the log open, Open of one that is not is an error, and
	// the other way round.
	Shared bool

	// OnCheckpoint is called after each checkpoint was written, on the goroutine of the log: calls
	// wait meanwhile, and it must not use the Log. The Logger gets a panic of it. A copy elsewhere
	// shows if somebody cuts off the end of the log: see [VerifyOptions.Heads].
	OnCheckpoint func(Head)

	// Logger gets an error when lines cannot be written, once, and a note when they can be again.
	// Nil means none.
	Logger *slog.Logger
}

const (
	groupTime  = 10 * time.Millisecond // lines of Add wait for others as long
	retryTime  = time.Second           // between attempts to write lines of Add
	leadTime   = 50 * time.Millisecond // a caller waits as long for the disk before the goroutine of the log does
	holdTime   = 2 * time.Millisecond  // a lone caller keeps its thread as long for the disk
	rotateTime = time.Minute           // between attempts to rotate
	lockTime   = 5 * time.Second       // wait for the lock of a shared log
	maxQueued  = 1 << 16
	maxGroup   = 4096
	maxTaken   = 256 // lines, for which there is room between groups

	maxQueuedBytes = 64 << 20 // with those of the group that is being written
	maxGroupBytes  = 8 << 20
)

// ErrClosed is the error of Write after Close.
var ErrClosed = errors.New("audit: the log is closed")

// Log is an open audit log. It is safe for concurrent use. It owns a goroutine, which ends with
// Close.
type Log struct {
	path    string
	options Options

	mu     sync.Mutex
	queue  []queued // guarded by mu
	bytes  int      // of the lines that are not written yet; guarded by mu
	closed bool     // guarded by mu
	floods floods

	writer *writer // that callers can lead; nil: its goroutine has not begun; guarded by mu
	busy   bool    // a caller or the goroutine writes; guarded by mu
	wanted bool    // the goroutine waits until a caller has written; guarded by mu

	urgent chan struct{} // a line waits to be written now
	late   *time.Timer   // makes lines of Add urgent after groupTime; nil: there was none; guarded by mu
	timed  bool          // late runs; guarded by mu
	slow   *time.Timer   // ends the wait of a caller that leads, see [writer.lead]; nil: there was none; guarded by mu
	begun  time.Time     // when the last caller began to lead; guarded by mu
	looks  bool          // slow runs; guarded by mu
	events *os.File      // of the disk for which that caller waits; guarded by mu

	stop  chan struct{}
	done  chan struct{}
	final error // of the last group; read after done

	written, dropped atomic.Int64
	lag              atomic.Int64 // nanoseconds that the last group took
	fault            atomic.Pointer[error]
	changed          atomic.Pointer[string] // how others have changed the log; nil: no change was found
	latest           atomic.Pointer[noted]  // the last checkpoint for other nodes; nil: none yet
}

// queued is a line that is not written yet.
type queued struct {
	line
	waiter *waiter // gets the outcome; nil: nobody waits
	at     time.Time
}

// waiter is a caller of Write that waits for its line.
type waiter struct {
	wake chan struct{} // capacity 1
	over atomic.Bool
	err  error // the outcome; read after over
}

// end gives a waiter the outcome.
func (w *waiter) end(err error) {
	w.err = err
	w.over.Store(true)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// wait waits for the outcome. The error is the cause of the end of ctx, if that comes first. It does not ask for
// ctx.Done, which makes a context of more parts.
func (w *waiter) wait(ctx context.Context) error {
	if w.over.Load() {
		return nil
	}
	end := engine.Rouse(ctx, w.wake)
	defer engine.Sleep(ctx, w.wake)
	for !w.over.Load() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		select {
		case <-w.wake:
		case <-end:
			<-ctx.Done() // its parent has ended; ctx follows at once
		}
	}
	return nil
}

// Open opens a log to add to, and creates the file and its folder if needed. An empty path means
// [DefaultPath]. The log goes on from its last whole line. It is an error if another process has it
// open, unless the [Options] of both say Shared.
func Open(path string, o *Options) (*Log, error) {
	if path == "" {
		var err error
		if path, err = DefaultPath(); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
	}
	l := &Log{path: path, urgent: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if o != nil {
		l.options = *o
	}
	l.options.defaults()
	if key := l.options.Key; key != nil && len(key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("audit log: the key has %d bytes; a private Ed25519 key has %d", len(key), ed25519.PrivateKeySize)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("audit log: %w", irregular(path))
	}
	w := &writer{Log: l, chain: chain{path: path, log: l}}
	if err := w.open(); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	go w.run()
	return l, nil
}

func (o *Options) defaults() {
	if o.Node == "" {
		if o.Node, _ = os.Hostname(); o.Node == "" {
			o.Node = "node"
		}
	}
	if o.Redactor == nil {
		o.Redactor = trace.NewRedactor(nil)
	}
	if o.Interval <= 0 {
		o.Interval = 10 * time.Second
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 100 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// lock takes the lock of the log.
func (l *Log) lock() (unlock func(), err error) {
	wait := lockTime
	if !l.options.Shared {
		wait = 200 * time.Millisecond // a process that has just ended
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	path := resolved(l.path)
	unlock, err = ownfile.Lock(ctx, path+lockExt)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, inUse(path)
	}
	return unlock, err
}

// Two files beside a log are locked: the first by the process that writes lines now, the second for as long
// as a Shared log is open, by all of them together.
const (
	lockExt  = ".lock"
	usersExt = ".shared"
)

// join joins the users of a shared log until leave, or sees that there are none. The caller has the
// lock of the log.
func (l *Log) join() (leave func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	path := resolved(l.path)
	if l.options.Shared {
		return ownfile.LockShared(ctx, path+usersExt)
	}
	if _, err := os.Stat(path + usersExt); err != nil {
		return func() {}, nil
	}
	leave, err = ownfile.Lock(ctx, path+usersExt)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("other processes share %s, such as patchbay run; name another file for this one, or end them", path)
	}
	if err == nil {
		leave() // they need the lock of the log too
	}
	return func() {}, err
}

// resolved returns the path of a file behind symbolic links; without a file, path.
func resolved(path string) string {
	if file, err := filepath.EvalSymlinks(path); err == nil {
		return file
	}
	return path
}

func inUse(path string) error {
	return fmt.Errorf("another process writes to %s; name another file for this one, or end it", path)
}

// Write adds a line and waits until it is written, see [Options.Sync]. If ctx ends first, the error
// wraps its cause and the line may be in the log; Write may notice that up to 0.1 s late.
func (l *Log) Write(ctx context.Context, e Entry) error {
	line, err := l.checked(&e)
	if err != nil {
		return err
	}
	w := &waiter{wake: make(chan struct{}, 1)}
	lead, err := l.enqueue(queued{line: line, waiter: w})
	if err != nil {
		return err
	}
	if lead != nil {
		lead.lead()
	}
	if err := w.wait(ctx); err != nil {
		return fmt.Errorf("audit log: %s: %w", l.path, err)
	}
	return w.err
}

// Add adds a line without waiting for the disk. A line that cannot be written is kept and tried
// again each second; a full queue drops it, see [Stats]. An entry that Write refuses is dropped too,
// and the Logger of [Options] gets the error.
func (l *Log) Add(e Entry) {
	if l.tryAdd(e) != nil {
		l.dropped.Add(1)
	}
}

// tryAdd is Add without counting a line that is lost.
func (l *Log) tryAdd(e Entry) error {
	line, err := l.checked(&e)
	if err != nil {
		l.options.Logger.Error("line of the audit log is dropped", "err", err)
		return err
	}
	_, err = l.enqueue(queued{line: line})
	return err
}

// checked returns the line of an entry that a program has made.
func (l *Log) checked(e *Entry) (out line, err error) {
	if err = e.check(); err == nil {
		out, err = l.prepare(e)
	}
	if err != nil {
		return line{}, fmt.Errorf("audit log: %w", err)
	}
	return out, nil
}

// enqueue adds a line to the queue. The caller must lead the writer that it returns, if any.
func (l *Log) enqueue(q queued) (lead *writer, err error) {
	q.at = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if len(l.queue) >= maxQueued || l.bytes+len(q.text) > maxQueuedBytes {
		return nil, fmt.Errorf("audit log: %d lines of %d MiB wait for %s; the disk is too slow for the calls", len(l.queue), l.bytes>>20, l.path)
	}
	l.queue = append(l.queue, q)
	l.bytes += len(q.text)
	switch {
	case q.waiter != nil && l.writer == nil:
		l.wake()
	case q.waiter != nil && l.busy: // it looks at the queue before it stops
	case q.waiter != nil:
		l.busy = true
		l.writer.leads()
		return l.writer, nil
	case len(l.queue) > 1 || l.timed: // another line wakes the writer
	case l.late == nil:
		l.timed, l.late = true, time.AfterFunc(groupTime, l.grouped)
	default:
		l.timed = true
		l.late.Reset(groupTime)
	}
	return nil, nil
}

// grouped wakes the writer if the first line has waited for groupTime. Otherwise the timer goes on: to stop it
// and to set it again for each line costs a system call.
func (l *Log) grouped() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timed = false
	if len(l.queue) == 0 {
		return
	}
	if rest := groupTime - time.Since(l.queue[0].at); rest > 0 {
		l.timed = true
		l.late.Reset(rest)
		return
	}
	l.wake()
}

// signed calls OnCheckpoint.
func (l *Log) signed(h Head) {
	defer func() {
		if p := recover(); p != nil {
			l.options.Logger.Error("OnCheckpoint of the audit log panics", "panic", p)
		}
	}()
	if l.options.OnCheckpoint != nil {
		l.options.OnCheckpoint(h)
	}
}

// wake wakes the writer.
func (l *Log) wake() {
	select {
	case l.urgent <- struct{}{}:
	default: // it is awake
	}
}

// Stats is the state of a log.
type Stats struct {
	Lines   int64         // of Write and Add that this Log has written
	Dropped int64         // lines of Add that are lost
	Queued  int           // lines that wait
	Lag     time.Duration // of the last group: the time that writing took
	Err     error         // of the last group; nil: it was written
	Changed string        // how others have changed the log: a cut end, a missing FILE.head; empty: this Log has found no change
}

// Stats returns the state of the log.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	queued := len(l.queue)
	l.mu.Unlock()
	s := Stats{Lines: l.written.Load(), Dropped: l.dropped.Load(), Queued: queued, Lag: time.Duration(l.lag.Load())}
	if err := l.fault.Load(); err != nil {
		s.Err = *err
	}
	if what := l.changed.Load(); what != nil {
		s.Changed = *what
	}
	return s
}

// Close writes the lines that wait and a checkpoint, and closes the file. The error is that of the
// last lines. It may be called more than once.
func (l *Log) Close() error {
	l.flushFloods()
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	if first {
		close(l.stop)
	}
	<-l.done
	return l.final
}
