package bridge

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// A task goes on after its caller has left, so the server is notified when nothing waits for the
// task:
//
//   - A call that waits for a task and is given up cancels the task.
//   - A call that is given up before its answer arrives cancels the task that a late answer
//     names.
//   - A task whose handle did not reach the caller in front is cancelled.
//   - Close does the same for all pending calls, and then closes the wire.
//
// One case remains: if a server answers over HTTP just when its caller disconnects, the task goes
// on for its time to live.

// pendingCancels are the tasks, and calls that may become tasks, that a Remote must cancel before
// it closes the wire. The zero value is ready for use.
type pendingCancels struct {
	mu      sync.Mutex
	open    map[*pendingCancel]struct{} // guarded by mu
	closing bool                        // guarded by mu
	over    bool                        // nothing more can be sent; guarded by mu
	empty   chan struct{}               // closed when closing and nothing is open; nil before closing; guarded by mu
}

// pendingCancel is a task that may have to be cancelled. The goroutine that adds it also calls
// done.
type pendingCancel struct {
	all    *pendingCancels
	ctx    context.Context // of the work; closing the Remote ends it
	cancel context.CancelCauseFunc
}

// Bounds of closing.
const (
	cancelGrace = 500 * time.Millisecond // for all cancellations
	lateAnswer  = 250 * time.Millisecond // part of it, for the answer to a call just given up
)

// cancelTime bounds the request that cancels a task.
const cancelTime = 2 * time.Second

// add begins work with ctx; false if the Remote is already closing.
func (p *pendingCancels) add(ctx context.Context) (*pendingCancel, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil, false
	}
	d := &pendingCancel{all: p}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	if p.closing {
		d.cancel(ErrClosed)
	}
	if p.open == nil {
		p.open = map[*pendingCancel]struct{}{}
	}
	p.open[d] = struct{}{}
	return d, true
}

// done ends the work. It may be called more than once.
func (d *pendingCancel) done() {
	d.cancel(nil)
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	if _, open := d.all.open[d]; !open {
		return
	}
	delete(d.all.open, d)
	if d.all.closing && len(d.all.open) == 0 {
		d.all.end()
	}
}

// end accepts no more work; mu is held.
func (p *pendingCancels) end() {
	p.over = true
	close(p.empty)
}

// doneAfter calls f on a new goroutine, and then done.
func (d *pendingCancel) doneAfter(f func()) {
	go func() {
		defer d.done()
		f()
	}()
}

// close cancels the contexts of the work and waits for it, at most for cancelGrace. The returned
// channel is closed when no work is left; work that remains gives up when the wire is closed.
func (p *pendingCancels) close() <-chan struct{} {
	p.mu.Lock()
	if !p.closing {
		p.closing, p.empty = true, make(chan struct{})
		for d := range p.open {
			d.cancel(ErrClosed)
		}
		if len(p.open) == 0 {
			p.end()
		}
	}
	empty := p.empty
	p.mu.Unlock()
	t := time.NewTimer(cancelGrace)
	defer t.Stop()
	select {
	case <-empty:
	case <-t.C: // the server does not answer
	}
	return empty
}

// abandon cancels a task that nothing waits for.
func (r *Remote) abandon(id string) {
	if d, ok := r.cancels.add(context.Background()); ok {
		d.doneAfter(func() { r.cancelTask(id) })
	}
}

// cancelTask asks the server to cancel a task, bounded in time.
func (r *Remote) cancelTask(id string) {
	if r.Rev.CoreTasks && !r.has("tasks", "cancel") {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cancelTime)
	defer cancel()
	if _, err := r.Request(ctx, revision.MethodTaskCancel, TaskParams(id)); err != nil {
		r.Log.Debug("task not cancelled", "task", text.Short(id), "err", err)
	}
}

// GivenUp implements engine.LateInbox.
func (i *callInbox) GivenUp() (late func(result json.RawMessage)) {
	x := (*Call)(i)
	if !x.mayBecomeTask() {
		return nil
	}
	r := x.r
	waiting, ok := r.cancels.add(context.Background())
	if !ok {
		return nil
	}
	t := time.AfterFunc(lateAnswer, waiting.done)
	return func(result json.RawMessage) {
		if id := r.taskIn(result); id != "" {
			r.abandon(id)
		}
		t.Stop()
		waiting.done()
	}
}

// mayBecomeTask reports whether the server may make a task of the call.
func (x *Call) mayBecomeTask() bool {
	switch {
	case x.method != revision.MethodCall:
		return false
	case !x.r.Rev.Sessions:
		_, declared := jsonx.LookupPath(x.caps, "extensions", revision.Tasks)
		return declared && x.r.has("extensions", revision.Tasks)
	}
	return x.r.CoreTasks()
}

// taskIn returns the id of the task in the answer to a call, or "" if there is none.
func (r *Remote) taskIn(result json.RawMessage) string {
	handle := result
	if !r.Rev.Sessions {
		if kind, err := resultType(result); err != nil || kind != "task" {
			return ""
		}
	} else {
		handle = coreHandle(result)
	}
	id, err := TaskID(handle)
	if err != nil {
		return ""
	}
	return id
}
