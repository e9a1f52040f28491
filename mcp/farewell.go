package mcp

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// A task goes on when its caller has left, so that who leaves one behind has to say so:
//
//   - A call that waits for a task, and is given up, has the task cancelled.
//   - A call that is given up before its answer is there has the task cancelled that the
//     answer makes known, if it comes all the same.
//   - A task whose handle did not reach the caller in front is cancelled.
//   - Close does the same with all that waits, and then closes the wire.
//
// What is left is a server that answers over HTTP just when its caller hangs up: its task
// goes on for its time to live.

// farewells are what a session has to tell its server before it closes the wire. The zero
// value is ready for use.
type farewells struct {
	mu      sync.Mutex
	debts   map[*debt]struct{} // guarded by mu
	closing bool               // guarded by mu
	over    bool               // nothing more can be told; guarded by mu
	paid    chan struct{}      // closed when closing and there are no debts; nil before closing; guarded by mu
}

// debt is something that may have to be told. Its owner ends it by pay.
type debt struct {
	f      *farewells
	ctx    context.Context // of what the owner does meanwhile; closing the session ends it
	cancel context.CancelCauseFunc
}

// Bounds of leaving.
const (
	farewellTime = 500 * time.Millisecond // that Close gives a server for what is owed
	lateTime     = 250 * time.Millisecond // that Close gives it for the answer to a call just given up
)

// owe begins a debt, for something that ctx belongs to; false if it is too late.
func (f *farewells) owe(ctx context.Context) (*debt, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return nil, false
	}
	d := &debt{f: f}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	if f.closing {
		d.cancel(ErrClosed)
	}
	if f.debts == nil {
		f.debts = map[*debt]struct{}{}
	}
	f.debts[d] = struct{}{}
	return d, true
}

// pay ends the debt. It may be called more than once.
func (d *debt) pay() {
	d.cancel(nil)
	d.f.mu.Lock()
	defer d.f.mu.Unlock()
	if _, owed := d.f.debts[d]; !owed {
		return
	}
	delete(d.f.debts, d)
	if d.f.closing && len(d.f.debts) == 0 {
		d.f.settled()
	}
}

// settled takes notice that nothing is owed any more; mu is held.
func (f *farewells) settled() {
	f.over = true
	close(f.paid)
}

// payBy pays by what f does on a goroutine of its own.
func (d *debt) payBy(f func()) {
	go func() {
		defer d.pay()
		f()
	}()
}

// close ends what goes on and waits until all is told, at most for farewellTime. The channel
// is closed when nothing is left; what is gives up when the wire is closed.
func (f *farewells) close() <-chan struct{} {
	f.mu.Lock()
	if !f.closing {
		f.closing, f.paid = true, make(chan struct{})
		for d := range f.debts {
			d.cancel(ErrClosed)
		}
		if len(f.debts) == 0 {
			f.settled()
		}
	}
	paid := f.paid
	f.mu.Unlock()
	t := time.NewTimer(farewellTime)
	defer t.Stop()
	select {
	case <-paid:
	case <-t.C: // the server does not answer
	}
	return paid
}

// abandon tells the server that nobody waits for a task any more.
func (s *Session) abandon(id string) {
	if d, ok := s.farewells.owe(context.Background()); ok {
		d.payBy(func() { s.cancelTask(id) })
	}
}

// cancelTask tells the server to give a task up, bounded in time.
func (s *Session) cancelTask(id string) {
	if s.rev.CoreTasks && !s.Server().Capabilities.Has("tasks", "cancel") {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cancelTime)
	defer cancel()
	if _, err := s.request(ctx, revision.MethodTaskCancel, taskParams(id), nil); err != nil {
		s.log.Debug("task not cancelled", "task", clip(id), "err", err)
	}
}

// GivenUp implements engine.LateInbox.
func (i *callInbox) GivenUp() (late func(result json.RawMessage)) {
	x := (*outgoingCall)(i)
	if !x.mayBecomeTask() {
		return nil
	}
	s := x.s
	waiting, ok := s.farewells.owe(context.Background())
	if !ok {
		return nil
	}
	t := time.AfterFunc(lateTime, waiting.pay)
	return func(result json.RawMessage) {
		if id := s.taskIn(result); id != "" {
			s.abandon(id)
		}
		t.Stop()
		waiting.pay()
	}
}

// mayBecomeTask tells whether the server may make a task of the call.
func (x *outgoingCall) mayBecomeTask() bool {
	switch {
	case x.method != revision.MethodCall:
		return false
	case !x.s.rev.Sessions:
		_, declared := jsonx.LookupPath(x.caps, "extensions", revision.Tasks)
		return declared && x.s.capabilities().Has("extensions", revision.Tasks)
	}
	return x.s.coreTasks()
}

// taskIn is the id of the task that the answer to a call tells of, empty for none.
func (s *Session) taskIn(result json.RawMessage) string {
	handle := result
	if !s.rev.Sessions {
		if kind, err := resultType(result); err != nil || kind != "task" {
			return ""
		}
	} else {
		handle = coreHandle(result)
	}
	id, err := taskID(handle)
	if err != nil {
		return ""
	}
	return id
}
