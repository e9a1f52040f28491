package audit

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// writer writes the lines of a Log: its goroutine, or in the usual case the caller of Write, see lead. The one that has
// set busy uses the file alone.
type writer struct {
	*Log
	chain
	unlock  func()
	part    func()    // leaves the users of a shared log
	checked time.Time // of the last checkpoint
	told    int64     // dropped lines that a line tells

	unrotated time.Time      // the last attempt to rotate failed then
	detail    map[string]any // of a log that was opened again, for a line

	taken []queued // room for the next group; nil: a group is being written; guarded by mu

	handed  chan *flight // from a caller that has led, to the goroutine, which is busy then
	several bool         // other goroutines run while a caller keeps its thread
}

// open begins to write.
func (w *writer) open() (err error) {
	if w.unlock, err = w.lock(); err != nil {
		return err
	}
	if w.part, err = w.join(); err != nil {
		w.unlock()
		return err
	}
	detail, err := w.recover()
	if err == nil {
		m := w.mark()
		w.begin()
		if w.options.Key != nil {
			own := KeyID(publicKey(w.options.Key))
			detail["key"] = own
			if head, err := readHead(w.chain.path); err == nil && head != nil && head.Checkpoint.Key != own {
				detail["keyBefore"] = head.Checkpoint.Key
				w.options.Logger.Warn("audit log is signed with another key from here on", "file", w.Log.path, "key", own, "before", head.Checkpoint.Key)
			}
		}
		if w.options.Shared && len(detail) == 0 && w.Seq > 0 { // one of many short runs
			return w.release()
		}
		if w.options.Shared { // such a log has no stop lines
			detail["shared"] = true
		}
		if w.Seq == 0 {
			w.id = newLogID()
			detail["log"] = w.id
		}
		if w.size == 0 && w.Seq > 0 { // the last process ended after a rotation
			err = w.node(EventFile, w.continued())
		}
		if err == nil {
			err = w.node(EventStart, detail)
		}
		if err == nil {
			if err = w.checkpoint(); err == nil {
				err = w.chain.write(m, w.options.Sync == SyncGroup)
			}
		}
	}
	if err != nil {
		if w.file != nil {
			w.file.Close()
		}
		w.disk.close()
		w.part()
		w.unlock()
		return err
	}
	w.checked = time.Now()
	next := "patchbay audit verify " + w.Log.path + " says more"
	if cut, ok := detail["cut"].(Head); ok {
		w.found("audit log has lost its end", "file", w.Log.path, "line", cut.Seq, "next", next)
	} else if detail["headMissing"] != nil {
		w.found("audit log has lost the copy of its last checkpoint, so a cut end cannot be found", "file", headPath(w.Log.path), "next", next)
	}
	return w.release()
}

// found logs that the log was changed by others, and keeps that for Stats.
func (w *writer) found(what string, args ...any) {
	w.options.Logger.Error(what, args...)
	w.changed.Store(&what)
}

// acquire makes the file of a shared log this process's own, until release.
func (w *writer) acquire() (err error) {
	if !w.options.Shared {
		return nil
	}
	if w.unlock, err = w.lock(); err != nil {
		return err
	}
	if w.detail, err = w.recover(); err != nil {
		w.unlock()
	}
	return err
}

// release lets other processes write to a shared log.
func (w *writer) release() error {
	if !w.options.Shared {
		return nil
	}
	var err error
	if w.file != nil {
		err = w.file.Close()
	}
	w.unlock()
	return err
}

// run writes groups of lines until Close.
func (w *writer) run() {
	defer close(w.done)
	sign := time.NewTicker(w.options.Interval)
	defer sign.Stop()
	var again <-chan time.Time // lines wait after an error
	w.lendable()
	for stopping := false; !stopping; {
		var rest *flight
		handed := false
		select {
		case <-w.urgent:
		case <-again:
		case <-sign.C:
		case <-w.stop:
			stopping = true
		case rest = <-w.handed:
			handed = true
		}
		if !handed {
			rest = w.acquireTurn()
		}
		again = nil
		w.finish(rest)
		for {
			group, more := w.take()
			err := w.commit(group, stopping && !more)
			if err != nil {
				again = time.After(retryTime)
			}
			if err != nil && stopping {
				w.final = err
				break
			}
			if (!more || err != nil) && w.releaseTurn() {
				break
			}
		}
	}
	if !w.options.Shared {
		if w.file != nil {
			w.final = errors.Join(w.final, w.file.Close())
		}
		w.unlock()
	}
	w.part()
	w.final = errors.Join(w.final, w.disk.close())
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.queue { // after an error
		if q.waiter == nil {
			w.dropped.Add(1)
		} else {
			q.waiter.end(w.final)
		}
	}
	w.queue, w.bytes = nil, 0
}

// take returns the next lines of the queue, and whether there are more.
func (w *writer) take() (group []queued, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	for n < min(len(w.queue), maxGroup) && (n == 0 || size+len(w.queue[n].text) <= maxGroupBytes) {
		size += len(w.queue[n].text)
		n++
	}
	group = append(w.taken, w.queue[:n]...)
	w.queue, w.taken = slices.Delete(w.queue, 0, n), nil
	return group, len(w.queue) > 0
}

// commit writes a group, and tells those that wait. After an error the lines for which nobody waits
// are in the queue again.
func (w *writer) commit(group []queued, last bool) error {
	due := w.options.Key != nil && w.unsigned > 0 && time.Since(w.checked) >= w.options.Interval
	if !w.options.Shared && w.file != nil && w.gone(false) {
		w.leave()
	}
	if len(group) == 0 && !due && !last && (w.file != nil || w.options.Shared) {
		return nil
	}
	begun := time.Now()
	return w.settle(group, begun, w.tryCommit(group, due, last))
}

// settle tells those that wait for a group.
func (w *writer) settle(group []queued, begun time.Time, err error) error {
	if err != nil {
		err = explained(w.Log.path, err)
	}
	w.report(err)
	if err == nil {
		w.lag.Store(int64(time.Since(begun)))
		w.written.Add(int64(len(group))) // before those that wait go on
	}
	var kept []queued
	size := 0
	for i := range group {
		q := &group[i]
		if err != nil && q.waiter == nil {
			kept = append(kept, *q)
			continue
		}
		size += len(q.text)
		q.free()
		if q.waiter != nil {
			q.waiter.end(err)
		}
	}
	clear(group)
	w.mu.Lock()
	if w.bytes -= size; kept != nil {
		w.queue = append(kept, w.queue...)
	}
	if cap(group) <= maxTaken {
		w.taken = group[:0]
	}
	w.mu.Unlock()
	return err
}

// leave closes a file that is gone, so that the next group opens the log again.
func (w *writer) leave() {
	_ = w.file.Close() // its lines are written
	w.file = nil
}

func (w *writer) tryCommit(group []queued, due, last bool) (err error) {
	if w.options.Shared && len(group) == 0 {
		return nil
	}
	if err := w.acquire(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.release()) }()
	size := 0
	for _, q := range group {
		size += q.size()
	}
	if w.file != nil && w.full(size) && time.Since(w.unrotated) > rotateTime {
		if w.gone(true) {
			w.leave()
		} else if err := w.rotate(); err != nil {
			w.unrotated = time.Now()
			w.options.Logger.Warn("audit log cannot be rotated, so its file grows", "file", w.Log.path, "err", err)
		}
	}
	if w.file == nil {
		if w.detail, err = w.recover(); err != nil {
			return err
		}
	}
	m := w.mark()
	w.begin()
	switch {
	case w.detail["gone"] != nil:
		if w.id != "" {
			w.detail["log"] = w.id
		}
		if err := w.node(EventGone, w.detail); err != nil {
			return err
		}
	case len(w.detail) > 0:
		w.detail["open"] = true // it is not another process that starts
		if err := w.node(EventStart, w.detail); err != nil {
			return err
		}
	case w.size == 0:
		if err := w.node(EventFile, w.continued()); err != nil {
			return err
		}
	}
	dropped := w.dropped.Load()
	if dropped > w.told {
		if err := w.node(EventDropped, map[string]any{"lines": dropped - w.told}); err != nil {
			return err
		}
	}
	for _, q := range group {
		if err := w.add(&q.line); err != nil {
			return err
		}
	}
	if last && !w.options.Shared {
		if err := w.node(EventStop, nil); err != nil {
			return err
		}
	}
	if due || last && !w.options.Shared {
		if err := w.checkpoint(); err != nil {
			return err
		}
	}
	if err := w.chain.write(m, w.options.Sync == SyncGroup); err != nil {
		return err
	}
	for _, lost := range []string{"gone", "cut"} {
		if head, ok := w.detail[lost].(Head); ok {
			w.found("audit log was removed, renamed, replaced or cut while it was open, and is opened again", "file", w.Log.path, "line", head.Seq)
		}
	}
	w.told, w.detail = dropped, nil
	if w.chain.last != nil {
		w.checked = time.Now()
		w.signed(w.Head)
	}
	return nil
}

// report logs the first error after a success, and the first success after an error.
func (w *writer) report(err error) {
	before := w.fault.Load()
	switch {
	case err == nil && before != nil:
		w.fault.Store(nil)
		w.options.Logger.Info("audit log is written again", "file", w.Log.path)
	case err != nil:
		fault := err // err does not move to the heap
		w.fault.Store(&fault)
		if before == nil {
			w.options.Logger.Error("audit log cannot be written", "err", err)
		}
	}
}

// explained names the file and the next step.
func explained(path string, err error) error {
	next := "see that the file can be written"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		next = "make room on its disk"
	}
	return fmt.Errorf("audit log: cannot write to %s; %s: %w", path, next, err)
}
