package chat

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/host"
)

// turn is work in progress for the person: an answer from the model, or a call by hand.
type turn struct {
	cancel    context.CancelFunc
	cancelled bool
	began     time.Time
	what      string
}

// turnOver reports the end of a turn.
type turnOver struct {
	*turn
	talk *talk
	err  error
}

// send sends a message to the model.
func (u *ui) send(text string) {
	if !u.look.lines {
		u.blocks = append(u.blocks, &block{kind: said, over: true, text: bounded(text)})
	}
	if u.model() == nil {
		u.note("%s", u.c.noModel())
		return
	}
	t, m, pasted := u.talk, u.model(), slices.Clone(u.pasted)
	u.run("thinking", func(ctx context.Context) error {
		parts, err := u.c.attached(ctx, text, m, pasted)
		if err == nil {
			_, err = t.Send(ctx, text, parts...)
		}
		return err
	})
}

// noModel returns the error for a missing model, with advice.
func (c *Chat) noModel() string {
	if c.o.NoModel != "" {
		return c.o.NoModel
	}
	return "no model is configured"
}

// run runs f in a goroutine, as a turn that ctrl-C cancels.
func (u *ui) run(what string, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(u.c.ctx)
	t := &turn{cancel: cancel, began: u.look.now, what: what}
	u.turn = t
	talk, free := u.talk, u.talk.free
	u.c.start(func(context.Context) {
		defer cancel()
		err := held(ctx, free)
		if err == nil {
			err = f(ctx)
		}
		u.c.mail.put(turnOver{t, talk, err})
	})
}

// briefly is later for a function that holds the conversation. The next turn, which cannot begin meanwhile,
// waits for its end, and so does the next such function.
func (u *ui) briefly(f func(ctx context.Context) func(*ui)) tea.Cmd {
	before, free := u.talk.free, make(chan struct{})
	u.talk.free = free
	return u.later(func(ctx context.Context) func(*ui) {
		defer close(free)
		if err := held(ctx, before); err != nil {
			return nil
		}
		return f(ctx)
	})
}

// held waits until a conversation is free, or returns the cause of ctx.
func held(ctx context.Context, free <-chan struct{}) error {
	if free == nil {
		return nil
	}
	select {
	case <-free:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ended handles the end of a turn.
func (u *ui) ended(m turnOver) {
	if m.turn != u.turn {
		return
	}
	if u.turn, u.failed = nil, nil; m.cancelled && u.hint != "" {
		u.hint = againQuits // it is no longer being cancelled
	}
	errors.As(m.err, &u.failed)
	for _, b := range u.blocks {
		u.finish(b)
	}
	switch {
	case m.err == nil:
	case m.cancelled:
		u.note("cancelled")
	case errors.Is(m.err, host.ErrNoModel):
		u.note("%s", u.c.noModel())
	default:
		u.note("%s", bounded(advice.Words(m.err)))
	}
	if queued := u.queued; queued != "" {
		u.queued = ""
		if m.err != nil { // the person may not mean it any more
			u.input.set(strings.TrimSpace(queued + "\n" + u.input.String()))
			return
		}
		u.send(queued)
	}
}

// finish ends a block without further events.
func (u *ui) finish(b *block) {
	if b.over {
		return
	}
	b.over = true
	if b.kind == answer { // everything was shown already
		return
	}
	if !b.began.IsZero() {
		b.took = u.look.now.Sub(b.began)
	}
	if b.kind == called && b.state != finished {
		b.state, b.call.Outcome = finished, host.Cancelled
	}
	u.keep(b)
}

// keep keeps a block, so that it can be opened.
func (u *ui) keep(b *block) {
	if b.kind == thought && strings.TrimSpace(b.text) == "" {
		return
	}
	if b.number == 0 {
		u.number++
		b.number = u.number
	}
	u.kept = append(u.kept, b)
	u.kept = u.kept[max(0, len(u.kept)-maxKept):]
}
