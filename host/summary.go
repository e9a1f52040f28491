package host

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Texts about summaries, to the model.
const (
	sayAttached = "[What the person attached before:]"
	saySummary  = "[What was said and done so far, summarised by you:]\n"
	askSummary  = "Write a summary of this conversation that takes its place, for yourself: what the person wants, what was done and decided, " +
		"facts, names, identifiers and numbers that may be needed, and what is still open. Write the summary alone."
	askMatters = "\nThe person says what matters most: "
)

const (
	summaryShare  = 0.9   // of a request's bound: the size at which a summary is written first
	attachedShare = 4     // of the window, what the person attached before a summary takes one part in so many
	attachedMost  = 16384 // tokens of it, if the window is not known
	summaryFails  = 3     // in a row in one turn; after that, none is tried
)

// Summarise lets the model write a summary of the conversation, which replaces the earlier entries
// in later requests; the attachments of the person stay beside it. matters says what the summary must
// not lack, for example "the open questions"; it may be empty. The entries stay as they are: the
// summary is one more, and Undo removes it. If the conversation does not fit the window of the
// model, the summary lacks what was left out. The errors are those of Send.
//
// Send does the same by itself when a request reaches Limits.SummariseAt, or the model rejects it as
// too long. The summary is then part of the turn, and stands for what came before the turn or before
// its last step.
func (c *Conversation) Summarise(ctx context.Context, matters string) (*Reply, error) {
	m := c.model()
	if m == nil {
		return nil, ErrNoModel
	}
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if len(c.Entries) == 0 {
		return nil, errors.New("there is nothing to summarise")
	}
	c.nextTurn()
	t := &turn{c: c, m: m, r: &Reply{}}
	if err = t.list(ctx); err == nil {
		var res *model.Response
		if res, err = t.summarise(ctx, mark{Host: true, Summary: true}, matters); res != nil {
			t.r.Text, t.r.Stop = res.Message.Text(), res.Stop
		}
	}
	return t.r, c.ended(ctx, t.r, err)
}

// summarise adds a summary with a note that says what it stands for.
func (t *turn) summarise(ctx context.Context, m mark, matters string) (*model.Response, error) {
	c := t.c
	before, began := c.taken(), time.Now()
	c.tell(Event{Kind: Summarising, Model: t.m.Info().Name})
	ask := askSummary
	if matters = strings.TrimSpace(matters); matters != "" {
		ask += askMatters + clean(matters)
	}
	left := c.leave(trimmed{})
	t.mute = true
	res, cost, err := t.answer(ctx, asking{choice: model.Choice{Mode: "none"}, said: ask, whole: true})
	t.mute = false
	c.leave(left)
	if err == nil && !hasText(&res.Message) {
		err = errors.New("the model has written no summary")
	}
	if err != nil {
		return res, err
	}
	if c.forgets() && m.Task[1] > 0 {
		c.forget(m.Task[1], m.From)
		m.From = m.Task[1]
	}
	text := strings.TrimSpace(res.Message.Text())
	c.add(ctx, Entry{Message: marked(m, model.Part{Text: saySummary + text}), Model: res.Model, Usage: res.Usage, Retried: res.Retried, Cost: cost})
	c.tell(Event{Kind: Summarised, Text: text, Usage: &res.Usage, Cost: cost, Model: res.Model, Before: before, After: c.Size(), Took: Millis(time.Since(began))})
	return res, nil
}

// leave sets what requests leave out, and returns what they left out before.
func (c *Conversation) leave(now trimmed) (before trimmed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, c.left = c.left, now
	return before
}

// taken returns the tokens that the conversation takes: the larger of its size and the estimate.
func (c *Conversation) taken() int64 {
	size := c.Size()
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(size, int64(c.fixed+c.sizeLocked(c.recapLocked(c.window(c.model())), shortening{})))
}

// makeRoom summarises the conversation if the next request would almost fill the window. A summary that
// fails is noted, since requests can leave something out instead; the error is that of ctx.
func (t *turn) makeRoom(ctx context.Context) error {
	c := t.c
	bound := c.h.Limits.SummariseAt
	if bound == 0 {
		bound = int(float64(c.window(t.m)) * summaryShare)
	}
	switch {
	case t.unsummarised():
		c.forgetSteps()
	case bound > 0 && c.taken() >= int64(bound):
		t.summariseFor(ctx, bound)
	}
	return context.Cause(ctx)
}

// unsummarised reports whether no summary is written in the rest of the turn.
func (t *turn) unsummarised() bool {
	return t.fails == summaryFails || t.c.h.Limits.SummariseAt < 0
}

// summariseFor summarises what came before the turn, or before its last step, if that makes room: at
// least a quarter of a number of tokens. It reports whether it did.
func (t *turn) summariseFor(ctx context.Context, room int) bool {
	if t.unsummarised() {
		return false
	}
	m, freed := t.c.older(t.opening)
	if freed < room/4 {
		return false
	}
	if _, err := t.summarise(ctx, m, ""); err != nil {
		if t.fails++; ctx.Err() == nil {
			t.c.tell(Event{Kind: Noted, Text: "the conversation could not be summarised: " + err.Error()})
		}
		return false
	}
	t.fails = 0
	return true
}

// older returns the note of a summary that stands for what came before the current turn, or, if the
// model has taken steps in it, before the last one, and the tokens that requests are spared. The turn
// began with that many entries.
func (c *Conversation) older(opening int) (m mark, freed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m = mark{Host: true, Summary: true, From: c.turnStartLocked()}
	for i := len(c.Entries) - 1; i >= m.From+opening; i-- {
		if c.Entries[i].Role == model.Assistant {
			m.From, m.Task = i, [2]int{m.From, m.From + opening}
			break
		}
	}
	h := c.recapLocked(0)
	for i := h.first; i < m.From; i++ {
		if i >= m.Task[0] && i < m.Task[1] || c.left.out(i) || c.Entries[i].mark().Summary {
			continue
		}
		freed += c.Entries[i].tokens(i < c.left.results)
	}
	return m, freed
}

// recap is what requests begin with: the last summary, and what they have of the entries that it
// stands for.
type recap struct {
	first    int // index of the first entry after it
	messages []model.Message
}

// recapLocked returns what requests begin with. The window bounds what the person attached; mu is held.
func (c *Conversation) recapLocked(window int) (h recap) {
	at := len(c.Entries) - 1
	var m mark
	for ; at >= 0; at-- {
		if m = c.Entries[at].mark(); m.Summary {
			break
		}
	}
	if at < 0 {
		return recap{}
	}
	if m.From <= 0 || m.From > at {
		m.From = at
	}
	if m.Task[0] < 0 || m.Task[0] > m.Task[1] || m.Task[1] > m.From {
		m.Task = [2]int{}
	}
	h.first = m.From
	summary := model.Message{Role: model.User}
	if attached := c.attachedLocked(m, window); len(attached) > 0 {
		summary.Parts = append(words(sayAttached), attached...)
	}
	summary.Parts = append(summary.Parts, model.Part{Text: c.Entries[at].Text()})
	h.messages = append(h.messages, summary)
	for _, e := range c.Entries[m.Task[0]:m.Task[1]] {
		h.messages = append(h.messages, model.Message{Role: e.Role, Parts: e.unmarked()})
	}
	return h
}

// attachedLocked returns what the person attached to messages that a summary stands for, the newest
// of it if there is too much; mu is held.
func (c *Conversation) attachedLocked(m mark, window int) (parts []model.Part) {
	room := window / attachedShare
	if window == 0 {
		room = attachedMost
	}
	for i := m.From - 1; i >= 0; i-- {
		if i >= m.Task[0] && i < m.Task[1] {
			continue
		}
		attached := c.Entries[i].attached()
		for _, p := range attached {
			room -= partTokens(p)
		}
		if room < 0 {
			break
		}
		parts = append(attached, parts...)
	}
	return parts
}

// attached returns what the person attached to a message: all of it but the first text.
func (e *Entry) attached() (parts []model.Part) {
	if e.Role != model.User || e.mark().Host {
		return nil
	}
	typed := false
	for _, p := range e.unmarked() {
		switch {
		case p.Result != nil:
			return nil
		case p.Media == nil && !typed:
			typed = true
		default:
			parts = append(parts, p)
		}
	}
	return parts
}

// unmarked returns the parts of an entry without notes of the host.
func (e *Entry) unmarked() (parts []model.Part) {
	for _, p := range e.Parts {
		if p.Opaque == nil || p.Opaque.Provider != markProvider {
			parts = append(parts, p)
		}
	}
	return parts
}
