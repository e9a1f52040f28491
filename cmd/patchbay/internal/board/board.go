// Package board keeps the state of the servers of a gateway or host, and, from [Board.Report] on,
// prints one line for each change that concerns a person.
package board

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
)

// Board knows the state of servers. It may be used by several goroutines.
type Board struct {
	talk *terminal.Talk

	mu        sync.Mutex
	last      map[string]gateway.Status // last state of each server; guarded by mu
	settled   map[string]bool           // servers that have started or failed once; guarded by mu
	reporting bool                      // changes are printed; guarded by mu
	changed   chan struct{}             // closed at the next change; guarded by mu
}

// New returns a board without servers. It prints changes to talk.
func New(talk *terminal.Talk) *Board {
	return &Board{talk: talk, last: map[string]gateway.Status{}, settled: map[string]bool{}, changed: make(chan struct{})}
}

// Tell takes the new state of a server.
func (b *Board) Tell(s gateway.Status) {
	if s.State == gateway.Stopped { // another server may have its name by now
		return
	}
	before, reporting := b.take(s)
	if !reporting {
		return
	}
	up := func(s gateway.Status) bool { return s.State == gateway.Ready || s.State == gateway.Idle }
	switch {
	case up(s) && s.Tools >= 0 && (!up(before) || before.Tools < 0):
		b.talk.Note("%s: ready, %s", s.Name, screen.Quantity(s.Tools, "tool"))
	case s.State == gateway.NeedsLogin && before.State != gateway.NeedsLogin,
		s.State == gateway.Failing && (before.State != gateway.Failing || before.Reason != s.Reason),
		s.State == gateway.Crashing && before.State != gateway.Crashing,
		s.State == gateway.Starting && s.Reason != "" && up(before):
		b.Complain(s)
	}
}

// take keeps the state of a server. It returns the state before, and whether changes are printed.
func (b *Board) take(s gateway.Status) (before gateway.Status, reporting bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before = b.last[s.Name]
	b.last[s.Name] = s
	if s.State != gateway.Starting {
		b.settled[s.Name] = true
	}
	close(b.changed)
	b.changed = make(chan struct{})
	return before, b.reporting
}

// LeaveOut records a server that is not started.
func (b *Board) LeaveOut(name, why string) {
	s := gateway.Status{Name: name, State: health.LeftOut, Reason: why, Tools: -1, Prompts: -1, Resources: -1}
	if before, reporting := b.take(s); reporting && before.State != health.LeftOut {
		b.Complain(s)
	}
}

// Complain prints that a server is not available, and why.
func (b *Board) Complain(s gateway.Status) {
	reason, said := Apart(s.Reason)
	b.talk.Note("%s: %s: %s", s.Name, s.State, screen.OneLine(reason))
	if !b.talk.Quiet {
		for _, line := range said {
			b.talk.Always("  | " + screen.Visible(line))
		}
	}
}

// Forget drops the state of a server that was removed or starts over.
func (b *Board) Forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, name)
	delete(b.settled, name)
}

// Report starts to print changes.
func (b *Board) Report() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reporting = true
}

// Starting returns the servers that have neither started nor failed yet.
func (b *Board) Starting(names []string) (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		if !b.settled[name] {
			list = append(list, name)
		}
	}
	return list
}

// countTime bounds the wait for the tool counts of servers that are ready.
const countTime = time.Second

// Wait waits until each server has started or failed, at most d, and then up to countTime for the
// tool counts of those that are ready. After a second it shows the names of the servers that are
// still starting.
func (b *Board) Wait(ctx context.Context, names []string, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	defer b.talk.EndProgress()
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	patient := true
	var late <-chan time.Time
	for ctx.Err() == nil {
		b.mu.Lock()
		changed := b.changed
		uncounted := false
		for _, s := range b.last {
			uncounted = uncounted || s.State == gateway.Ready && s.Tools < 0
		}
		b.mu.Unlock()
		starting := b.Starting(names)
		switch {
		case len(starting) > 0:
		case !uncounted:
			return
		case late == nil:
			late = time.After(countTime)
		}
		if !patient && len(starting) > 0 {
			b.talk.Status("starting " + strings.Join(starting, ", "))
		}
		select {
		case <-changed:
		case <-patience.C:
			patient = false
		case <-late:
			return
		case <-ctx.Done():
		}
	}
}

// Apart splits the reason of a state into the reason and the last lines of the server's output,
// which package gateway appends for callers.
func Apart(reason string) (why string, said []string) {
	why, quoted, found := strings.Cut(reason, saidLast)
	if !found {
		return reason, nil
	}
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return reason, nil
	}
	return why, strings.Split(text, "\n")
}

const saidLast = "; it last said: "
