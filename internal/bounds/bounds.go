// Package bounds limits the memory and the number of the processes of a command: the command with all
// processes that it has started, directly or not.
//
// On Linux, if this program may make control groups (version 2), each command gets its own, and the
// kernel enforces the limit of memory. Otherwise the processes are measured each second. A command that
// is over a limit must be ended by the caller; [Bound.Reason] words why. Other systems have no support.
package bounds

import (
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// Limits are the limits of one command. Zero: no limit.
type Limits struct {
	Memory    int64 // bytes
	Processes int
}

// every is the time between two measurements.
const every = time.Second

// Bound watches one command. A nil Bound does nothing. It may be used by several goroutines.
type Bound struct {
	limits Limits
	group  *group       // nil: the processes are measured
	guard  atomic.Int64 // process that is not counted, and whose descendants are; 0: not started
	over   chan struct{}
	once   sync.Once

	mu     sync.Mutex
	reason string // guarded by mu
	closed bool   // guarded by mu
}

// New returns the bound of a command, nil if there are no limits or the system has no support. If
// grouped is false, it makes no control group. Close it after the command has ended.
func New(l Limits, grouped bool) *Bound {
	if l == (Limits{}) || !Supported {
		return nil
	}
	b := &Bound{limits: l, over: make(chan struct{})}
	if grouped {
		b.group = newGroup(l)
	}
	return b
}

// Grouped reports whether the command gets a control group.
func (b *Bound) Grouped() bool { return b != nil && b.group != nil }

// Prepare makes a command start in the control group, if there is one.
func (b *Bound) Prepare(cmd *exec.Cmd) {
	if b.Grouped() {
		b.group.prepare(cmd)
	}
}

// Started sets the process that was started. It is a guard, which is not counted. The process of a
// second start replaces that of the first.
func (b *Bound) Started(pid int) {
	if b != nil {
		b.guard.Store(int64(pid))
	}
}

// Watch measures the processes each second until Close. If they are over a limit, it calls end once and
// returns.
func (b *Bound) Watch(end func()) {
	if b == nil {
		return
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-b.over:
			return
		case <-t.C:
		}
		if b.look() {
			end()
			return
		}
	}
}

// look measures the processes and reports whether they are over a limit.
func (b *Bound) look() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch guard := int(b.guard.Load()); {
	case b.closed || b.reason != "":
	case b.group != nil:
		b.reason = b.group.exceeded(b.limits)
	case guard != 0:
		b.reason = b.limits.exceeded(measure(guard))
	}
	return b.reason != ""
}

// exceeded words which limit a use is over; empty: none.
func (l Limits) exceeded(memory int64, processes int) string {
	switch {
	case l.Memory > 0 && memory > l.Memory:
		return fmt.Sprintf("it was stopped, because it used %d MB of memory and its entry allows %d MB", (memory+999_999)/1_000_000, l.Memory/1_000_000)
	case l.Processes > 0 && processes > l.Processes:
		return fmt.Sprintf("it was stopped, because it ran %d processes and its entry allows %d", processes, l.Processes)
	}
	return ""
}

// Reason returns why the command was ended, empty if it was not over a limit.
func (b *Bound) Reason() string {
	if b == nil {
		return ""
	}
	if b.Grouped() {
		b.look() // the kernel ends processes between two measurements
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reason
}

// Close ends Watch. A control group is removed when its last process has ended, which Close does not
// wait for.
func (b *Bound) Close() {
	if b == nil {
		return
	}
	b.once.Do(func() {
		b.Reason() // the last chance to read it
		b.mu.Lock()
		b.closed = true
		b.mu.Unlock()
		close(b.over)
		if b.group != nil {
			go b.group.remove() // bounded in time
		}
	})
}
