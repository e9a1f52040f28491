package audit

import (
	"runtime"
	"slices"
	"time"
)

// flight is a group that a caller has taken from the queue, and that the goroutine of the log finishes.
type flight struct {
	group   []queued
	written bool // into the file, and the kernel brings it to the disk
	before  mark // of the chain
	begun   time.Time
}

// lendable lets callers lead from now on.
func (w *writer) lendable() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.handed == nil {
		w.handed = make(chan *flight, 1)
	}
	w.several = runtime.GOMAXPROCS(0) > 1
	w.writer = w
}

// lead writes the lines of the queue for the caller of Write, which found nobody writing: to wake the goroutine of
// the log and to be woken by it takes more time of the processor than the lines do. The goroutine does the unusual:
// it rotates, signs and retries, and it waits for a slow disk.
func (w *writer) lead() {
	group, more := w.take()
	begun := time.Now()
	if !w.usual(group) {
		w.handed <- &flight{group: group, begun: begun}
		return
	}
	before := w.mark()
	w.begin()
	var err error
	for i := range group {
		if err = w.add(&group[i].line); err != nil {
			break
		}
	}
	lone := w.lone(group)
	if err == nil {
		err = w.put()
	}
	if err == nil && w.options.Sync == SyncGroup {
		if w.start(lone) {
			wait := w.disk.wait
			if lone {
				wait = w.disk.hold
			}
			var there bool
			if there, err = wait(); !there {
				w.handed <- &flight{group, true, before, begun}
				return
			}
		} else {
			err = w.sync()
		}
	}
	err = w.settle(group, begun, w.wrote(before, err))
	w.mu.Lock()
	stay := more || w.wanted || err != nil || w.awaited()
	w.busy = stay
	w.mu.Unlock()
	if stay {
		w.handed <- nil
	}
}

// lone reports whether the caller that leads waits alone for a disk that was quick the last time. It then keeps its thread
// until its lines are on disk.
func (w *writer) lone(group []queued) bool {
	if lag := time.Duration(w.lag.Load()); lag <= 0 || lag > holdTime || !w.several || w.options.Sync != SyncGroup {
		return false
	}
	waiting := 0
	for i := range group {
		if group[i].waiter != nil {
			waiting++
		}
	}
	return waiting == 1
}

// leads notes that a caller begins to lead, and sets a timer. The caller holds mu.
func (w *writer) leads() {
	w.begun, w.events = time.Now(), w.disk.events
	switch {
	case w.looks:
	case w.slow == nil:
		w.looks, w.slow = true, time.AfterFunc(leadTime, w.look)
	default:
		w.looks = true
		w.slow.Reset(leadTime)
	}
}

// look ends the wait of a caller that has led for leadTime. The timer goes on while there are callers.
func (w *writer) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks = false
	if !w.busy && time.Since(w.begun) >= leadTime {
		return
	}
	rest := leadTime - time.Since(w.begun)
	if rest <= 0 {
		if w.events != nil {
			hurry(w.events)
		}
		return
	}
	w.looks = true
	w.slow.Reset(rest)
}

// usual reports whether a group needs nothing but to be written and to be on disk.
func (w *writer) usual(group []queued) bool {
	size := 0
	for i := range group {
		size += group[i].size()
	}
	switch {
	case w.options.Shared || w.file == nil || w.size == 0 || w.detail != nil || w.fault.Load() != nil || w.dropped.Load() > w.told:
		return false
	case w.options.Key != nil && (w.unsigned+len(group) >= CheckpointLines || time.Since(w.checked) >= w.options.Interval):
		return false
	}
	if w.gone(false) {
		w.leave()
		return false
	}
	return (w.options.Sync == SyncNone || w.disk.ready()) && !w.full(size)
}

// finish does the rest of what a caller has begun; nil: there is none. The goroutine of the log calls it.
func (w *writer) finish(f *flight) {
	switch {
	case f == nil:
	case f.written:
		there, err := false, error(nil)
		for !there {
			w.disk.patient()
			there, err = w.disk.wait()
		}
		_ = w.settle(f.group, f.begun, w.wrote(f.before, err))
	default:
		_ = w.commit(f.group, false)
	}
}

// acquireTurn makes the goroutine busy. It waits for a caller that writes, and returns what that leaves.
func (w *writer) acquireTurn() *flight {
	w.mu.Lock()
	if !w.busy {
		w.busy = true
		w.mu.Unlock()
		return nil
	}
	w.wanted = true
	w.mu.Unlock()
	return <-w.handed
}

// releaseTurn ends the turn of the goroutine, and reports false if a line has come that somebody waits for.
func (w *writer) releaseTurn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.awaited() {
		return false
	}
	w.busy, w.wanted = false, false
	return true
}

// awaited reports whether somebody waits for a line of the queue. The caller holds mu.
func (w *writer) awaited() bool {
	return slices.ContainsFunc(w.queue, func(q queued) bool { return q.waiter != nil })
}
