package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
)

// ErrNoModel says that a conversation has nobody to talk to.
var ErrNoModel = errors.New("no model is configured")

// ErrBusy says that a conversation is in the middle of a turn.
var ErrBusy = errors.New("the conversation is in the middle of a turn")

// Entry is a message of a conversation, and what is known of it.
type Entry struct {
	model.Message
	Time  time.Time   `json:"time"`
	Turn  int         `json:"turn"`            // from 1
	Model string      `json:"model,omitempty"` // of an answer
	Usage model.Usage `json:"usage,omitzero"`  // of an answer
	Cost  float64     `json:"cost,omitempty"`  // of an answer, 0 if the price is not known
}

// Conversation is a talk with a model about one thing after another. Its fields are set before
// the first Send. One turn is under way at a time.
type Conversation struct {
	ID      string
	Model   model.Model // nil: that of the host
	System  string      // what the model is told first; the instructions of servers follow
	Entries []Entry     // so far, of one that is resumed

	// OnEvent is told of everything that happens, in order. It must not block for long, nor
	// use the conversation. Nil: nobody is.
	OnEvent func(Event)

	// Keep is told of each entry, and of where it stands: if that is before the end of what was
	// kept, what stood there and after it is no more. A nil entry only ends it there. An error
	// is noted, and the conversation goes on. Nil: nothing is kept.
	Keep func(ctx context.Context, at int, e *Entry) error

	h       *Host
	busy    chan struct{} // capacity 1: who has put something in has the turn
	telling sync.Mutex    // orders events

	mu      sync.Mutex
	allowed map[string]bool   // tools allowed until the end, by grantOf; guarded by mu
	doubts  map[string]string // why calls must not be made again, by callKey; nil: nobody has looked yet; guarded by mu
	turn    int               // guarded by mu
	step    int               // guarded by mu
	asides  model.Usage       // of completions for servers, not billed yet; guarded by mu
	extra   float64           // what asides has cost; guarded by mu
}

// NewConversation begins a conversation.
func (h *Host) NewConversation() *Conversation {
	return &Conversation{ID: strings.ToLower(rand.Text()[:10]), h: h, busy: make(chan struct{}, 1), allowed: map[string]bool{}}
}

// Reply is what came of a turn.
type Reply struct {
	Text  string // of the last answer
	Steps int
	Usage model.Usage // of answers, and of completions that servers asked for
	Cost  float64     // of Usage; 0: not known
	Stop  model.Stop
}

// ErrSteps says that a turn has taken as many steps as it may.
var ErrSteps = errors.New("the model has taken as many steps as it may")

// Send says something to the model, and does what it wants until it has its answer. Whatever
// happens, the conversation can go on afterwards: each call in it has a result. The reply is
// what there was, also beside an error, which is ErrNoModel, ErrBusy, ErrSteps, a *model.Error
// or the cause of ctx.
func (c *Conversation) Send(ctx context.Context, text string, more ...model.Part) (*Reply, error) {
	m := c.Model
	if m == nil {
		m = c.h.Model
	}
	if m == nil {
		return nil, ErrNoModel
	}
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	default:
		return nil, ErrBusy
	}
	c.mu.Lock()
	if n := len(c.Entries); n > 0 {
		c.turn = max(c.turn, c.Entries[n-1].Turn)
	}
	c.turn++
	c.step = 0
	c.mu.Unlock()
	var parts []model.Part
	if text != "" {
		parts = append(parts, model.Part{Text: text})
	}
	c.add(ctx, Entry{Message: model.Message{Role: model.User, Parts: append(parts, more...)}})
	r := &Reply{}
	err := c.answer(ctx, m, r)
	c.bill(r)
	e := Event{Kind: Ended, Text: r.Text, Usage: &r.Usage, Cost: r.Cost}
	if err != nil {
		e.Error = err.Error()
	}
	c.tell(e)
	return r, err
}

// answer asks the model until it wants nothing called any more.
func (c *Conversation) answer(ctx context.Context, m model.Model, r *Reply) error {
	for r.Steps < or(c.h.Limits.Steps, 50) {
		r.Steps++
		c.mu.Lock()
		c.step = r.Steps
		c.mu.Unlock()
		tools := c.h.Tools(ctx)
		res, err := c.ask(ctx, m, tools)
		if res != nil {
			cost := m.Info().Price.Of(res.Usage)
			r.Usage.Add(res.Usage)
			r.Cost += cost
			r.Stop, r.Text = res.Stop, res.Message.Text()
			if err != nil { // it broke off
				res.Message.Parts = slices.DeleteFunc(res.Message.Parts, func(p model.Part) bool { return p.Call != nil })
			}
			if len(res.Message.Parts) > 0 {
				c.add(ctx, Entry{Message: res.Message, Model: res.Model, Usage: res.Usage, Cost: cost})
			}
			c.tell(Event{Kind: Answered, Text: res.Message.Text(), Usage: &res.Usage, Cost: cost, Model: res.Model})
		}
		if err != nil {
			return err
		}
		calls := res.Message.Calls()
		if len(calls) == 0 {
			return nil
		}
		c.add(context.WithoutCancel(ctx), Entry{Message: model.Message{Role: model.User, Parts: c.run(ctx, calls, tools)}})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("%w: %d", ErrSteps, r.Steps)
}

func (c *Conversation) ask(ctx context.Context, m model.Model, tools []Tool) (*model.Response, error) {
	req := &model.Request{System: c.System}
	for _, e := range c.Entries {
		req.Messages = append(req.Messages, e.Message)
	}
	for _, t := range tools {
		req.Tools = append(req.Tools, t.forModel())
	}
	c.tell(Event{Kind: Asking, Model: m.Info().Name})
	return m.Generate(ctx, req, func(d model.Delta) {
		switch {
		case d.Again != "":
			c.tell(Event{Kind: Again, Text: d.Again})
		case d.Text != "":
			c.tell(Event{Kind: TextCame, Text: d.Text})
		case d.Thinking != "":
			c.tell(Event{Kind: Thought, Text: d.Thinking})
		}
	})
}

// add appends an entry, and has it kept.
func (c *Conversation) add(ctx context.Context, e Entry) {
	c.mu.Lock()
	e.Time, e.Turn = time.Now(), c.turn
	c.mu.Unlock()
	c.Entries = append(c.Entries, e)
	c.keep(ctx, len(c.Entries)-1, &e)
}

func (c *Conversation) keep(ctx context.Context, at int, e *Entry) {
	if c.Keep == nil {
		return
	}
	if err := c.Keep(context.WithoutCancel(ctx), at, e); err != nil {
		c.tell(Event{Kind: Noted, Text: "the conversation is not kept: " + err.Error()})
	}
}

// tell tells OnEvent.
func (c *Conversation) tell(e Event) {
	if c.OnEvent == nil {
		return
	}
	c.telling.Lock()
	defer c.telling.Unlock()
	c.mu.Lock()
	e.Time, e.Turn, e.Step = time.Now(), c.turn, c.step
	c.mu.Unlock()
	c.OnEvent(e)
}

// Undo takes the last turn back, and returns what the person said in it. It is ErrBusy in the
// middle of a turn.
func (c *Conversation) Undo(ctx context.Context) (string, error) {
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	default:
		return "", ErrBusy
	}
	if len(c.Entries) == 0 {
		return "", errors.New("there is nothing to take back")
	}
	last := c.Entries[len(c.Entries)-1].Turn
	at := slices.IndexFunc(c.Entries, func(e Entry) bool { return e.Turn == last })
	said := c.Entries[at].Text()
	c.Entries = c.Entries[:at:at]
	c.keep(ctx, at, nil)
	return said, nil
}
