package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
)

// board knows what became of the servers, and tells a person what is new. It may be
// used by several goroutines.
type board struct {
	a *app

	mu        sync.Mutex
	last      map[string]gateway.Status // what was heard of each server; guarded by mu
	settled   map[string]bool           // servers that have been tried; guarded by mu
	reporting bool                      // news are told; guarded by mu
	changed   chan struct{}             // closed at the next news; guarded by mu
}

func newBoard(a *app) *board {
	return &board{a: a, last: map[string]gateway.Status{}, settled: map[string]bool{}, changed: make(chan struct{})}
}

// tell takes in what became of a server.
func (b *board) tell(s gateway.Status) {
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
		b.a.talk.Note("%s: ready, %d tools", s.Name, s.Tools)
	case s.State == gateway.NeedsLogin && before.State != gateway.NeedsLogin,
		s.State == gateway.Failing && (before.State != gateway.Failing || before.Reason != s.Reason),
		s.State == gateway.Crashing && before.State != gateway.Crashing,
		s.State == gateway.Starting && s.Reason != "" && up(before):
		b.complain(s)
	}
}

// take keeps what became of a server. It returns what was known before, and whether
// news are told.
func (b *board) take(s gateway.Status) (before gateway.Status, reporting bool) {
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

// leaveOut takes note of a server that is not started.
func (b *board) leaveOut(name, why string) {
	s := gateway.Status{Name: name, State: health.LeftOut, Reason: why, Tools: -1, Prompts: -1, Resources: -1}
	if before, reporting := b.take(s); reporting && before.State != health.LeftOut {
		b.complain(s)
	}
}

// complain says that a server is not there, and why.
func (b *board) complain(s gateway.Status) {
	reason, said := apart(s.Reason)
	b.a.talk.Note("%s: %s: %s", s.Name, s.State, oneLine(reason))
	if !b.a.talk.Quiet {
		for _, line := range said {
			b.a.talk.Always("  | " + visible(line))
		}
	}
}

// forget drops what is known of a server that is gone, or begins anew.
func (b *board) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, name)
	delete(b.settled, name)
}

// report begins to tell what is new.
func (b *board) report() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reporting = true
}

// starting returns which of the servers were not tried yet.
func (b *board) starting(names []string) (list []string) {
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

// wait waits until each server has been tried, and those that are ready have said what
// they offer, but not for longer than d. A person is shown what is waited for.
func (b *board) wait(ctx context.Context, names []string, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	defer b.a.talk.EndProgress()
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
		starting := b.starting(names)
		switch {
		case len(starting) > 0:
		case !uncounted:
			return
		case late == nil:
			late = time.After(countTime)
		}
		if !patient && len(starting) > 0 {
			b.a.talk.Status("starting " + strings.Join(starting, ", "))
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

// apart takes the reason of a state and what the server has said last apart, which
// package gateway puts behind it for callers.
func apart(reason string) (why string, said []string) {
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

// table prints a line per server.
func (h *hub) table() {
	t := &screen.Grid{Right: []bool{false, true, true, true}}
	t.Add("SERVER", "TOOLS", "PROMPTS", "RESOURCES", "STATE")
	for _, s := range h.report().Servers {
		what := s.State
		switch {
		case s.Running() && s.Server != "":
			what = s.Server
		case s.Reason != "":
			what += ": " + s.Reason
		}
		t.Add(s.Name, count(s.Tools), count(s.Prompts), count(s.Resources), what)
		t.Below(s.Said...)
	}
	h.a.printGrid(t)
}

func count(n int) string {
	if n < 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
