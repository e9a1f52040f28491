package engine

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// Apart returns a copy of the call for work that several callers wait for, and that may go on when the caller of c has
// left. Its notifications go to tell, which passes them on with [Call.Pass]. Before a question, asks is called; its error
// is returned, and the question is not asked.
func (c *Call) Apart(tell func(method string, params json.RawMessage) error, asks func(context.Context) error) *Call {
	out := c.Detachable(c.Detach)
	out.ex = redirected{out.ex, tell}
	out.asker = guardedAsker{out.asker, asks}
	if out.progress == nil { // another caller may want it
		out.progress = &progress{token: json.RawMessage(`0`)}
	}
	return out
}

// Pass sends a notification of a call that [Call.Apart] has returned to the caller of c, which may be another one of the
// same revision: progress if the caller wants it, log messages of its level.
func (c *Call) Pass(method string, params json.RawMessage) error {
	switch {
	case c.ex == nil:
		return nil
	case method == revision.NoteProgress && c.progress == nil:
		return nil
	case method == revision.NoteProgress:
		params = jsonx.With(nil, params, "progressToken", c.progress.token)
	case method == revision.NoteMessage:
		raw, _ := jsonx.Lookup(params, "level")
		if level, err := jsonx.Unquote(raw); err != nil || !c.LogEnabled(level) {
			return nil
		}
	}
	return c.ex.Notify(method, params)
}

// guardedAsker asks only if a function agrees.
type guardedAsker struct {
	asker
	asks func(context.Context) error
}

func (a guardedAsker) ask(ctx context.Context, c *Call, qs []Question) ([]json.RawMessage, error) {
	if err := a.asks(ctx); err != nil {
		return nil, err
	}
	return a.asker.ask(ctx, c, qs)
}
