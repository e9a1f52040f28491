package host

import (
	"context"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Hook runs before and after calls of a model to servers. It can refuse a call and never allows one.
// Its functions are called by several goroutines at once, and may be nil.
type Hook struct {
	Tools []string // SERVER/TOOL, where * matches any text; nil: all

	// Before runs before anything else decides about a call, and before a person is asked. An error
	// refuses the call; the model is told its text.
	Before func(ctx context.Context, c *HookedCall) error

	// After runs after a call that was made and not cancelled, before the model gets the result. The
	// text that it returns is added to the result, for the model. An error is noted and changes
	// nothing.
	After func(ctx context.Context, c *HookedCall) (text string, err error)
}

// HookedCall is a call for a [Hook]. The members of CallEvent about the result are set only after it.
type HookedCall struct {
	Conversation string
	Hints        *mcp.ToolAnnotations // of the tool, as its server declares; nil: none
	CallEvent
}

// matches reports whether a hook is for a tool.
func (h *Hook) matches(t Tool) bool {
	if h.Tools == nil {
		return true
	}
	for _, pattern := range h.Tools {
		if wildcard.Match(pattern, t.Server+"/"+t.Tool.Name) {
			return true
		}
	}
	return false
}

func (p *pending) hooked(e CallEvent) *HookedCall {
	return &HookedCall{Conversation: p.c.ID, Hints: p.tool.Annotations, CallEvent: e}
}

// before returns the error of the first hook that refuses the call.
func (p *pending) before(ctx context.Context) error {
	for i := range p.c.h.Hooks {
		h := &p.c.h.Hooks[i]
		if h.Before == nil || !h.matches(p.tool) {
			continue
		}
		if _, err := ask(ctx, func() (struct{}, error) { return struct{}{}, h.Before(ctx, p.hooked(p.event)) }); err != nil {
			return err
		}
	}
	return nil
}

// after returns the parts of a result with the texts of the hooks, which run at the same time.
func (p *pending) after(ctx context.Context, e CallEvent) []model.Part {
	texts := make([]string, len(p.c.h.Hooks))
	var wg sync.WaitGroup
	for i := range p.c.h.Hooks {
		h := &p.c.h.Hooks[i]
		if h.After == nil || !h.matches(p.tool) {
			continue
		}
		wg.Go(func() {
			text, err := ask(ctx, func() (string, error) { return h.After(ctx, p.hooked(e)) })
			if err != nil && ctx.Err() == nil {
				p.c.tell(Event{Kind: Noted, Text: err.Error()})
			}
			texts[i] = strings.TrimSpace(text)
		})
	}
	wg.Wait()
	parts := e.Parts
	for _, text := range texts {
		if text != "" {
			parts = append(parts, model.Part{Text: "[A hook of the person says: " + clip(text) + "]"})
		}
	}
	return parts
}

// sayHook follows the reason of a hook that refused a call.
const sayHook = "\n(A hook of the person refused it. Do not try it again unchanged.)"
