package trace

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Tee gives each frame to several takers, such as the Record of a [Writer] and a page that shows
// live traffic. The zero value has no takers. Its methods may be called from any goroutine.
//
// Each taker has a bounded queue (1,024 frames, 64 MiB) and a goroutine of its own, gets each frame
// once and in the order of Record, and may keep it. Record never waits: frames that a slow taker
// has no room for are dropped for that taker alone, and Lost of its next frame counts them. A taker
// that panics loses that frame; the others do not notice.
type Tee struct {
	// OnFault is called with the first frame that a taker loses because it is slow, and with each
	// panic of a taker. It must not call the Tee. If nil, faults are only counted, in Lost.
	OnFault func(error)

	on atomic.Bool

	mu     sync.RWMutex
	takers []taker // guarded by mu
	closed bool    // guarded by mu
}

// taker is a taker with its queue.
type taker struct {
	*Writer
	choose func(Frame, func(Frame)) // nil: all
	queue  func(Frame)
}

// Watched is true while there are takers. Without takers nothing needs to make frames: see
// mcp.Server.Watched.
func (t *Tee) Watched() *atomic.Bool { return &t.on }

// Add adds a taker, which gets the frames from now on. The function it returns removes the taker
// again after it has got the frames recorded so far, waits at most five seconds for that, and may
// be called more than once. After Close, Add does nothing.
func (t *Tee) Add(take func(Frame)) (remove func()) { return t.AddSome(nil, take) }

// AddSome is like Add for a taker of some frames. The function choose is called with each frame, on the goroutine of Record and
// before the frame is copied. It passes the frames that the taker is to get to queue, this one or former ones, and may do so
// later, from any goroutine. It must be fast, and must not keep the data that the frame refers to or call the Tee.
func (t *Tee) AddSome(choose func(f Frame, queue func(Frame)), take func(Frame)) (remove func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return func() {}
	}
	w := newWriter(WriterOptions{MaxWait: -1, OnFault: t.OnFault}, func(f Frame) error {
		defer func() {
			if v := recover(); v != nil && t.OnFault != nil {
				t.OnFault(fmt.Errorf("a taker of frames panicked: %v", v))
			}
		}()
		take(f)
		return nil
	})
	t.takers = append(t.takers, taker{w, choose, w.Record})
	t.on.Store(true)
	return func() {
		t.mu.Lock()
		t.takers = slices.DeleteFunc(t.takers, func(x taker) bool { return x.Writer == w })
		t.on.Store(len(t.takers) > 0)
		t.mu.Unlock()
		_ = w.Close() // OnFault had its losses
	}
}

// Record gives a frame to all takers, without waiting for them. It keeps no reference to the
// frame's data. It is a function for OnFrame of package mcp.
func (t *Tee) Record(f Frame) {
	if !t.on.Load() {
		return
	}
	if f.Time.IsZero() {
		f.Time = time.Now()
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, w := range t.takers {
		if w.choose != nil {
			w.choose(f, w.queue)
		} else {
			w.Record(f)
		}
	}
}

// Close removes all takers, as the functions of Add do.
func (t *Tee) Close() {
	t.mu.Lock()
	takers := t.takers
	t.takers, t.closed = nil, true
	t.on.Store(false)
	t.mu.Unlock()
	var wg sync.WaitGroup
	for _, w := range takers {
		wg.Go(func() { _ = w.Close() })
	}
	wg.Wait()
}
