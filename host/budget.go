package host

import (
	"context"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// spend returns ErrBudget if the next request would exceed the tokens or the money of the turn. If
// another after it would, the model must answer now, which is told to it.
func (t *turn) spend() (said string, err error) {
	c, next := t.c, t.c.taken()
	switch {
	case !c.affords(t.m, next):
		return "", ErrBudget
	case c.affords(t.m, 2*next) || t.r.Early != "" || t.r.Steps == 0:
		return "", nil
	}
	t.r.Early = TooExpensive
	c.tell(Event{Kind: Noted, Text: "the tokens of the turn are almost used up, and the model must answer now"})
	return sayBudget, nil
}

// spending is what a request takes, at a price. Of a request in progress it is an estimate.
type spending struct {
	model.Usage
	price model.Price
}

// affords reports whether a request of some tokens keeps within the limits of the turn.
func (c *Conversation) affords(m model.Model, tokens int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.affordsLocked(spending{model.Usage{Input: tokens}, m.Info().Price})
}

// affordsLocked reports whether something more keeps within the limits of the turn, after what was spent
// and what the requests in progress take; mu is held.
func (c *Conversation) affordsLocked(more spending) bool {
	limits := &c.h.Limits
	tokens := c.Usage.Input + c.Usage.Output - c.before.Input - c.before.Output + more.Input + more.Output
	cost := c.Cost - c.paid + more.price.Of(more.Usage)
	for s := range c.asking {
		tokens += s.Input + s.Output
		cost += s.price.Of(s.Usage)
	}
	return (limits.Tokens <= 0 || tokens <= limits.Tokens) && (limits.Cost <= 0 || cost <= limits.Cost)
}

// within asks a model, and adds what that took to Usage and Cost. It returns ErrBudget in place of an
// attempt that would exceed the limits of the turn, and ends an answer that exceeds them, after which
// there is the beginning of it; tokens is the estimated size of the request.
func (c *Conversation) within(ctx context.Context, m model.Model, req *model.Request, tokens int64, emit func(model.Delta)) (res *model.Response, err error) {
	own, price := &spending{}, m.Info().Price
	takes := func(u model.Usage) (within bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		*own = spending{u, price}
		c.asking[own] = struct{}{}
		return c.affordsLocked(spending{})
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.asking, own)
		if res != nil {
			c.Usage.Add(res.Usage)
			c.Cost += m.Info().Price.Of(res.Usage)
		}
	}()
	taken, came := model.Usage{Input: tokens}, 0 // with attempts that broke off; bytes of the answer
	if !takes(taken) {
		return nil, ErrBudget
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	return m.Generate(ctx, req, func(d model.Delta) {
		came += len(d.Text) + len(d.Thinking)
		if d.Call != nil {
			came += len(d.Call.Name) + len(d.Call.Arguments)
		}
		if d.Again != "" {
			came = 0
			taken.Add(d.Lost)
		}
		now := taken
		now.Output += int64(text.Tokens(came))
		if !takes(now) {
			stop(ErrBudget)
		}
		emit(d)
	})
}
