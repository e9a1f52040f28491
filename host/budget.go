package host

import (
	"context"

	"github.com/patchbay-dev/patchbay/host/model"
)

// spend returns ErrBudget if the next request would exceed the tokens or the money of the turn. If
// another after it would, the model must answer now, which is told to it.
func (t *turn) spend() (said string, err error) {
	c, next := t.c, t.c.taken()
	switch {
	case !c.affords(t.m, next, model.Usage{}):
		return "", ErrBudget
	case c.affords(t.m, 2*next, model.Usage{}) || t.r.Early != "" || t.r.Steps == 0:
		return "", nil
	}
	t.r.Early = TooExpensive
	c.tell(Event{Kind: Noted, Text: "the tokens of the turn are almost used up, and the model must answer now"})
	return sayBudget, nil
}

// affords reports whether a request of some tokens keeps within the limits of the turn, after what was
// spent, and lost with answers that broke off.
func (c *Conversation) affords(m model.Model, tokens int64, lost model.Usage) bool {
	limits, price := &c.h.Limits, m.Info().Price
	c.mu.Lock()
	defer c.mu.Unlock()
	used := c.Usage.Input + c.Usage.Output - c.before.Input - c.before.Output + lost.Input + lost.Output
	cost := c.Cost - c.paid + price.Of(lost)
	return (limits.Tokens <= 0 || used+tokens <= limits.Tokens) &&
		(limits.Cost <= 0 || cost+price.Of(model.Usage{Input: tokens}) <= limits.Cost)
}

// within asks a model. It returns ErrBudget in place of an attempt that would exceed the limits of the
// turn; tokens is the estimated size of the request.
func (c *Conversation) within(ctx context.Context, m model.Model, req *model.Request, tokens int64, emit func(model.Delta)) (*model.Response, error) {
	if !c.affords(m, tokens, model.Usage{}) {
		return nil, ErrBudget
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var lost model.Usage
	return m.Generate(ctx, req, func(d model.Delta) {
		if lost.Add(d.Lost); d.Again != "" && !c.affords(m, tokens, lost) {
			stop(ErrBudget)
		}
		emit(d)
	})
}
