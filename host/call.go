package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// run makes the calls of an answer, several at the same time, and returns one result for each,
// in their order.
func (c *Conversation) run(ctx context.Context, calls []*model.Call, tools []Tool) []model.Part {
	parts := make([]model.Part, len(calls))
	slots := make(chan struct{}, or(c.h.Limits.Parallel, 8))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			parts[i] = model.Part{Result: c.call(ctx, call, tools)}
		})
	}
	wg.Wait()
	return parts
}

// call makes one call.
func (c *Conversation) call(ctx context.Context, call *model.Call, tools []Tool) *model.Result {
	began := time.Now()
	at := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == call.Name })
	if at < 0 {
		e := &CallEvent{ID: call.ID, Tool: call.Name, Arguments: call.Arguments}
		return c.resulted(e, call, Invalid, began, model.Part{Text: fmt.Sprintf("There is no tool %q. The tools are those that were listed.", call.Name)})
	}
	t, args := tools[at], call.Arguments
	e := &CallEvent{ID: call.ID, Server: t.Server, Tool: t.Tool.Name, Arguments: args}
	if t.as != nil {
		stood, with, err := t.as(args)
		if err != nil {
			return c.resulted(e, call, Invalid, began, model.Part{Text: err.Error()})
		}
		t, args = stood, with
		e = &CallEvent{ID: call.ID, Server: t.Server, Tool: t.Tool.Name, Arguments: args}
	}
	c.tell(Event{Kind: Called, Call: e})
	by, reason, err := "host", "", error(nil)
	if t.Server != "" {
		by, reason, err = c.approve(ctx, call.ID, t, args)
	}
	switch {
	case ctx.Err() != nil:
		return c.resulted(e, call, Cancelled, began, model.Part{Text: "The person cancelled this before it was called."})
	case err != nil:
		return c.resulted(e, call, Denied, began, model.Part{Text: "It was not called: " + err.Error()})
	case by == "":
		text := "The person did not allow this call. Do not try it again unless they ask for it."
		if reason != "" {
			text += " They said: " + reason
		}
		return c.resulted(e, call, Denied, began, model.Part{Text: text})
	}
	started := *e
	started.By = by
	c.tell(Event{Kind: Started, Call: &started})
	if t.do != nil {
		parts, err := t.do(ctx, args)
		switch {
		case ctx.Err() != nil:
			return c.resulted(e, call, Cancelled, began, model.Part{Text: "The person cancelled this."})
		case err != nil:
			return c.resulted(e, call, Failed, began, model.Part{Text: err.Error()})
		}
		return c.resulted(e, call, Succeeded, began, parts...)
	}
	var res *mcp.ToolResult
	err = c.h.Use(ctx, t.Server, func(s Session) error {
		var err error
		res, err = s.CallTool(ctx, t.Tool.Name, args, mcp.OnProgress(func(p mcp.ProgressEvent) {
			moved := *e
			moved.Done, moved.Total = p.Done, p.Total
			c.tell(Event{Kind: Progress, Call: &moved, Text: p.Message})
		}))
		return err
	})
	switch {
	case ctx.Err() != nil:
		return c.resulted(e, call, Cancelled, began, model.Part{Text: "The person cancelled this while it ran. It may have had an effect."})
	case err != nil:
		return c.resulted(e, call, Broken, began, model.Part{Text: err.Error()})
	}
	outcome := Succeeded
	if res.IsError {
		outcome = Failed
	}
	return c.resulted(e, call, outcome, began, c.resultParts(t, res)...)
}

// resulted tells of the end of a call, and makes its result.
func (c *Conversation) resulted(e *CallEvent, call *model.Call, outcome Outcome, began time.Time, parts ...model.Part) *model.Result {
	over := *e
	over.Outcome, over.Parts, over.Took = outcome, parts, time.Since(began)
	c.tell(Event{Kind: Resulted, Call: &over})
	return &model.Result{ID: call.ID, Name: call.Name, Parts: parts, Error: outcome != Succeeded}
}

// approve has a call decided about, and returns who has allowed it; empty: it was denied, and why.
func (c *Conversation) approve(ctx context.Context, id string, t Tool, args json.RawMessage) (by, reason string, err error) {
	name := t.Server + "/" + t.Tool.Name
	c.mu.Lock()
	allowed := c.allowed[name]
	c.mu.Unlock()
	if allowed {
		return "conversation", "", nil
	}
	for _, pattern := range c.h.Allow {
		if ok, _ := path.Match(pattern, name); ok {
			return "rule", "", nil
		}
	}
	if c.h.Person == nil {
		return "", "", errors.New("there is nobody to allow it; --allow names tools that need no approval")
	}
	c.tell(Event{Kind: Waiting, Call: &CallEvent{ID: id, Server: t.Server, Tool: t.Tool.Name, Arguments: args}})
	v, err := c.h.Person.Approve(ctx, &Approval{
		Conversation: c.ID, Call: id, Server: t.Server, Tool: t.Tool, Arguments: args,
	})
	switch {
	case err != nil:
		return "", "", err
	case v.Answer == Deny:
		return "", v.Reason, nil
	case v.Answer == AllowConversation:
		c.mu.Lock()
		c.allowed[name] = true
		c.mu.Unlock()
	}
	return "person", "", nil
}
