// Package board keeps the state of the servers of a gateway or a host, and tells a person what is new: once
// per change, in a line, and only after [Board.Report].
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
	last      map[string]gateway.Status // what was heard of each server; guarded by mu
	settled   map[string]bool           // servers that have been tried; guarded by mu
	reporting bool                      // news are told; guarded by mu
	changed   chan struct{}             // closed at the next news; guarded by mu
}

// New returns a board without servers, which tells its news to talk.
func New(talk *terminal.Talk) *Board {
	return &Board{talk: talk, last: map[string]gateway.Status{}, settled: map[string]bool{}, changed: make(chan struct{})}
}

// Tell takes in the state of a server.
func (b *Board) Tell(s gateway.Status) {
	if s.State == gateway.Stopped { // another may have its name by now
		return
	}
	before, reporting := b.take(s)
	if !reporting {
		return
	}
	up := func(s gateway.Status) bool { return s.State == gateway.Ready || s.State == gateway.Idle }
	switch {
	case up(s) && s.Tools >= 0 && (!up(before) || before.Tools < 0):
		b.talk.Note("%s: ready, %d tools", s.Name, s.Tools)
	case s.State == gateway.NeedsLogin && before.State != gateway.NeedsLogin,
		s.State == gateway.Failing && (before.State != gateway.Failing || before.Reason != s.Reason),
		s.State == gateway.Crashing && before.State != gateway.Crashing,
		s.State == gateway.Starting && s.Reason != "" && up(before):
		b.Complain(s)
	}
}

// take keeps the state of a server. It returns what was known before, and whether
// news are told.
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

// LeaveOut takes note of a server that is not started.
func (b *Board) LeaveOut(name, why string) {
	s := gateway.Status{Name: name, State: health.LeftOut, Reason: why, Tools: -1, Prompts: -1, Resources: -1}
	if before, reporting := b.take(s); reporting && before.State != health.LeftOut {
		b.Complain(s)
	}
}

// Complain says that a server is not there, and why.
func (b *Board) Complain(s gateway.Status) {
	reason, said := Apart(s.Reason)
	b.talk.Note("%s: %s: %s", s.Name, s.State, screen.OneLine(reason))
	if !b.talk.Quiet {
		for _, line := range said {
			b.talk.Always("  | " + screen.Visible(line))
		}
	}
}

// Forget drops what is known of a server that is gone, or begins anew.
func (b *Board) Forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, name)
	delete(b.settled, name)
}

// Report begins to tell what is new.
func (b *Board) Report() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reporting = true
}

// Starting returns which of the servers were not tried yet.
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

// countTime is for a server that is ready to say what it offers.
const countTime = time.Second

// Wait waits until each server has been tried, and those that are ready have said what
// they offer, but not for longer than d. A person is shown what is waited for.
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

// Apart takes the reason of a state and what the server has said last apart, which
// package gateway puts behind it for callers.
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
