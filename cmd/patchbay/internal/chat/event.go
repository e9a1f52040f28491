package chat

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
)

// event shows an event of the conversation.
func (u *ui) event(e host.Event) {
	u.trace(e)
	switch e.Kind {
	case host.Asking:
		u.doing("thinking")
	case host.TextCame:
		u.doing("answering")
		u.growing(answer).text += e.Text
	case host.Thought:
		b := u.growing(thought)
		b.text = bounded(b.text + e.Text)
	case host.Again:
		u.again(e.Text)
	case host.Answered:
		u.rest()
	case host.Summarising:
		u.doing("summarising")
	case host.Summarised:
		u.doing("thinking")
		u.summarised(e)
	case host.Noted:
		u.note("%s", bounded(e.Text))
	case host.Called, host.Waiting, host.Started, host.Progress, host.Logged, host.Retried, host.Asked, host.Sampled, host.Resulted:
		if e.Call != nil {
			u.callEvent(e)
		}
	}
}

// summarised shows that a summary took the place of the conversation.
func (u *ui) summarised(e host.Event) {
	u.rest()
	b := &block{kind: summary, over: true, text: bounded(e.Text), says: fmt.Sprintf("summarised, about %s tokens to %s", count(e.Before), count(e.After))}
	u.keep(b)
	u.add(b)
}

// doing sets the current activity.
func (u *ui) doing(what string) {
	if u.turn != nil {
		u.turn.what = what
	}
}

// growing returns the block of a kind that is being extended, and ends one of the other kind.
func (u *ui) growing(kind blockKind) *block {
	for _, b := range u.blocks {
		if b.kind == kind && !b.over {
			return b
		}
	}
	u.rest()
	b := &block{kind: kind, began: u.look.now}
	u.blocks = append(u.blocks, b)
	return b
}

// grows reports whether the model is still adding to a block.
func (b *block) grows() bool { return !b.over && (b.kind == answer || b.kind == thought) }

// rest ends the blocks that the model was adding to.
func (u *ui) rest() {
	for _, b := range u.blocks {
		if b.grows() {
			u.finish(b)
		}
	}
}

// again starts the answer over. The part that has moved above stays, and is marked as void.
func (u *ui) again(why string) {
	went := false
	u.blocks = slices.DeleteFunc(u.blocks, func(b *block) bool {
		went = went || b.grows() && b.stream.Begun()
		return b.grows()
	})
	if went {
		u.note("the answer above is void and starts over: %s", why)
	} else {
		u.note("the answer starts over: %s", why)
	}
}

// callEvent updates a call.
func (u *ui) callEvent(e host.Event) {
	var b *block
	for _, have := range u.blocks {
		if have.kind == called && have.call.ID == e.Call.ID && !have.over {
			b = have
		}
	}
	if b == nil {
		u.rest()
		b = &block{kind: called}
		u.blocks = append(u.blocks, b)
	}
	before := b.call
	b.call = *e.Call
	if len(b.call.Arguments) == 0 {
		b.call.Arguments = before.Arguments
	}
	switch e.Kind {
	case host.Waiting:
		b.state, b.says = waiting, e.Text
	case host.Started:
		b.state, b.says, b.began = running, "", u.look.now
	case host.Progress, host.Retried:
		b.says = e.Text
	case host.Asked:
		b.says = "asks: " + e.Text
	case host.Sampled:
		b.says = "got an answer from the model"
	case host.Logged:
		b.call.Done, b.call.Total = before.Done, before.Total
		b.log = append(b.log, screen.Cut(screen.OneLine(e.Text), 2000))
		b.log = b.log[max(0, len(b.log)-maxLog):]
	case host.Resulted:
		b.state, b.over, b.took = finished, true, time.Duration(e.Call.Took)
		u.keep(b)
		u.doing("thinking")
	}
}

// trace records an event for /trace.
func (u *ui) trace(e host.Event) {
	switch e.Kind {
	case host.TextCame, host.Thought, host.Progress, host.Summarising:
		return
	}
	line := fmt.Sprintf("%s  turn %d step %d  %s", e.Time.Format("15:04:05.000"), e.Turn, e.Step, e.Kind)
	if e.Model != "" {
		line += " " + e.Model
	}
	if e.Call != nil {
		line += " " + strings.Trim(e.Call.Server+"/"+e.Call.Tool, "/")
		if e.Call.By != "" {
			line += " by " + e.Call.By
		}
		if e.Call.Outcome != "" {
			line += fmt.Sprintf(" %s in %s", e.Call.Outcome, seconds(time.Duration(e.Call.Took)))
		}
		if e.Kind == host.Called {
			line += " " + string(e.Call.Arguments)
		}
	}
	if e.Usage != nil {
		line += fmt.Sprintf(" %d tokens in, %d out", e.Usage.Input, e.Usage.Output)
	}
	if slices.Contains([]host.EventKind{host.Noted, host.Again, host.Retried, host.Logged, host.Waiting}, e.Kind) && e.Text != "" {
		line += " " + e.Text
	}
	if e.Error != "" {
		line += ": " + e.Error
	}
	u.talk.steps = append(u.talk.steps, screen.Cut(screen.OneLine(line), 1000))
	u.talk.steps = u.talk.steps[max(0, len(u.talk.steps)-maxSteps):]
}
