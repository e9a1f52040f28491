package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/spelling"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/level"
)

// The calls of one answer run in this order:
//
//   - Calls run in parallel unless they depend on each other. A call of a tool that its server
//     declares not read-only waits for the earlier calls to that server, and later calls wait for
//     it. Of two identical calls, the second waits for the first.
//   - The person is asked about calls of one tool one at a time, in the order of the model, so that
//     permission for the whole conversation also covers the calls that wait.
//   - Only running calls count toward Limits.Parallel, not calls that wait for the person.

// pending is a call that the model has made and that has no result yet.
type pending struct {
	c      *Conversation
	call   *model.Call
	tool   Tool
	server *server
	args   json.RawMessage // as shown and sent: an object that fits the schema, on one line
	key    string          // equal for equal calls, see callKey
	safe   bool            // repeating it does no harm, as a trusted server says
	event  CallEvent       // fields shared by all events of the call

	asksAfter []<-chan struct{} // closed when the calls that must be decided first are decided
	runsAfter []<-chan struct{} // closed when the calls that this one waits for have ended
	decided   chan struct{}
	over      chan struct{}
}

// run makes the calls of an answer and returns their results, in the same order.
func (c *Conversation) run(ctx context.Context, calls []*model.Call, tools []Tool) []model.Part {
	c.recall(tools, 1)
	results := make([]model.Part, len(calls))
	slots := make(chan struct{}, or(c.h.Limits.Parallel, 8))
	inLine := line{asked: map[string]*pending{}, same: map[string]*pending{}, servers: map[string]*traffic{}}
	var wg sync.WaitGroup
	for i, call := range calls {
		p, refused := c.prepare(call, tools)
		if refused != nil {
			results[i].Result = refused
			continue
		}
		inLine.join(p)
		wg.Go(func() { results[i].Result = p.run(ctx, slots) })
	}
	wg.Wait()
	return results
}

// line orders the calls of an answer. A call waits only for earlier calls, so there is no deadlock.
type line struct {
	asked   map[string]*pending // the last call of each tool
	same    map[string]*pending // the last of equal calls
	servers map[string]*traffic
}

// traffic holds the calls to one server that later calls wait for.
type traffic struct {
	write <-chan struct{}   // closed when the last call that changes something has ended; nil: none
	since []<-chan struct{} // calls after that one
}

func (l *line) join(p *pending) {
	tool := p.tool.Server + "/" + p.tool.Tool.Name
	if before := l.asked[tool]; before != nil {
		p.asksAfter = append(p.asksAfter, before.decided)
	}
	l.asked[tool] = p
	if before := l.same[p.key]; before != nil {
		p.asksAfter = append(p.asksAfter, before.over) // its outcome may be a reason to ask
	}
	l.same[p.key] = p
	t := l.servers[p.tool.Server]
	if t == nil {
		t = &traffic{}
		l.servers[p.tool.Server] = t
	}
	if t.write != nil {
		p.runsAfter = append(p.runsAfter, t.write)
	}
	if writes(p.tool.Tool) {
		p.runsAfter = append(p.runsAfter, t.since...)
		t.write, t.since = p.over, nil
	} else {
		t.since = append(t.since, p.over)
	}
}

// prepare finds the tool of a call and prepares its arguments. If the call cannot be made, it
// returns a result instead.
func (c *Conversation) prepare(call *model.Call, tools []Tool) (*pending, *model.Result) {
	p := &pending{c: c, call: call, event: CallEvent{ID: call.ID, Tool: call.Name, Arguments: call.Arguments}}
	t, args, why, words := c.h.resolve(call, tools)
	if t.Tool != nil {
		p.event.Server, p.event.Tool = t.Server, t.Tool.Name
	}
	if words != "" {
		p.tell(Called, "")
		return nil, p.refused(Invalid, why, words)
	}
	p.tool, p.args, p.key = t, args, callKey(t.Name, args)
	p.event.Arguments = args
	p.tell(Called, "")
	if t.Server != "" {
		if p.server = c.h.named(t.Server); p.server == nil {
			return nil, p.refused(Broken, "the server was removed", fmt.Sprintf("The server %q was removed, and its tools with it. Go on without them.", clip(t.Server)))
		}
		p.safe = p.server.Trusted && (readOnly(t.Tool) || idempotent(t.Tool))
	}
	p.decided, p.over = make(chan struct{}), make(chan struct{})
	return p, nil
}

// resolve finds the tool of a call and arguments that fit it. If the call cannot be made, why gives
// the reason and words are for the model.
func (h *Host) resolve(call *model.Call, tools []Tool) (t Tool, args json.RawMessage, why, words string) {
	switch called := calledTools(call.Name, tools); len(called) {
	case 0:
		return t, nil, "no server has the tool", unknownTool(call.Name, tools)
	case 1:
		t = called[0]
	default:
		return t, nil, "several servers have the tool", ambiguousTool(call.Name, called)
	}
	if args, words = h.arguments(t.Tool, call.Arguments); words != "" {
		return t, nil, "the arguments do not fit", words
	}
	if t.as == nil {
		return t, args, "", ""
	}
	meant, args, err := t.as(args)
	if err != nil {
		return t, nil, "the arguments do not fit", clip(err.Error())
	}
	meant.Name = cmp.Or(meant.Name, t.Name)
	if args, words = h.arguments(meant.Tool, args); words != "" {
		return meant, nil, "the arguments do not fit", words
	}
	return meant, args, "", ""
}

// callKey returns a key that is equal for calls of one tool with arguments that are equal as JSON.
func callKey(name string, args json.RawMessage) string {
	return name + " " + string(jsonx.Canonical(args))
}

// calledTools returns the tool with a name. Some models leave out the server: if no tool has the
// name, calledTools returns the tools that their servers call so, of which only a single one can be
// called.
func calledTools(name string, tools []Tool) (called []Tool) {
	for _, t := range tools {
		switch {
		case t.Name == name:
			return []Tool{t}
		case t.Server != "" && t.Tool.Name == name:
			called = append(called, t)
		}
	}
	return called
}

// ambiguousTool tells the model that several servers have a tool.
func ambiguousTool(name string, called []Tool) string {
	names := make([]string, len(called))
	for i, t := range called {
		names[i] = fmt.Sprintf("%q", t.Name)
	}
	return clip(fmt.Sprintf("The tool %q may be %s: call one of these names. Nothing was called.", clip(name), strings.Join(names, " or ")))
}

// unknownTool tells the model that a tool does not exist, and suggests similar names.
func unknownTool(name string, tools []Tool) string {
	text := fmt.Sprintf("The tool %q does not exist.", clip(name))
	if near := nearest(name, tools); len(near) > 0 {
		return text + " Did you mean " + strings.Join(near, " or ") + "? Nothing was called."
	}
	return text + " The tools are those that were listed; nothing was called."
}

// nearest returns at most three quoted names of tools that are similar to name.
func nearest(name string, tools []Tool) []string {
	type guess struct {
		name     string
		distance int
	}
	var guesses []guess
	lower := strings.ToLower(name)
	for _, t := range tools {
		full, bare := strings.ToLower(t.Name), strings.ToLower(t.Tool.Name)
		d := min(spelling.Distance(lower, full), spelling.Distance(lower, bare)) // the model may have left out the server
		if d <= max(1, len(lower)/3) {
			guesses = append(guesses, guess{t.Name, d})
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int { return a.distance - b.distance })
	var names []string
	for _, g := range guesses[:min(3, len(guesses))] {
		names = append(names, fmt.Sprintf("%q", g.name))
	}
	return names
}

// run decides about the call and makes it.
func (p *pending) run(ctx context.Context, slots chan struct{}) *model.Result {
	defer close(p.over)
	d := p.decide(ctx)
	close(p.decided)
	switch {
	case ctx.Err() != nil:
		p.audited(ctx, Decision{By: byNobody, Outcome: Cancelled, Reason: context.Cause(ctx).Error()})
		return p.refused(Cancelled, context.Cause(ctx).Error(), cancelledBefore)
	case d.changed != nil:
		f := &fault{kind: outdated, err: d.changed}
		p.audited(ctx, Decision{By: byNobody, Outcome: Broken, Reason: f.class()})
		return p.refused(Broken, d.changed.Error(), f.words(p))
	case !d.allowed:
		p.audited(ctx, Decision{By: d.by, Rule: d.rule, Outcome: Denied, Reason: d.reason})
		p.event.By, p.event.Rule = d.by, d.rule
		return p.refused(Denied, d.reason, d.words())
	}
	if !wait(ctx, p.runsAfter...) {
		return p.left(ctx, d)
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return p.left(ctx, d)
	}
	p.event.By, p.event.Rule = d.by, d.rule
	ctx, err := p.audit(ctx, Decision{Allowed: true, By: d.by, Rule: d.rule})
	if err != nil {
		return p.refused(Broken, err.Error(), "It was not called, as the audit log cannot be written: "+clip(err.Error()))
	}
	p.tell(Started, "")
	ctx = p.c.calling(ctx, &p.event)
	if p.tool.do != nil {
		return p.do(ctx)
	}
	return p.make(ctx)
}

const cancelledBefore = "The person cancelled this before it was called. It has not run."

// left returns the result of a call that was allowed and then cancelled before it began.
func (p *pending) left(ctx context.Context, d decision) *model.Result {
	p.audited(ctx, Decision{Allowed: true, By: d.by, Rule: d.rule, Outcome: Cancelled, Reason: context.Cause(ctx).Error()})
	return p.refused(Cancelled, context.Cause(ctx).Error(), cancelledBefore)
}

// do runs a tool of the host itself.
func (p *pending) do(ctx context.Context) *model.Result {
	began := time.Now()
	parts, err := p.tool.do(ctx, p.args)
	outcome, why, class := Succeeded, "", ""
	switch {
	case err != nil && ctx.Err() != nil:
		outcome, why, class = Cancelled, context.Cause(ctx).Error(), wasCancelled
		parts = []model.Part{{Text: "The person cancelled this."}}
	case err != nil:
		outcome, why, class = Failed, clip(err.Error()), classOf(err)
		parts = []model.Part{{Text: why}}
	}
	return p.end(ctx, outcome, why, class, time.Since(began), parts...)
}

// end audits the outcome of a call that began and makes its result. The argument class is the
// reason for the audit log.
func (p *pending) end(ctx context.Context, outcome Outcome, why, class string, took time.Duration, parts ...model.Part) *model.Result {
	p.audited(ctx, Decision{Allowed: true, By: p.event.By, Rule: p.event.Rule, Outcome: outcome, Reason: class, Cached: p.event.Cached, Took: took})
	return p.result(outcome, why, took, parts...)
}

// wait waits until all channels are closed, and returns false if ctx ends first.
func wait(ctx context.Context, all ...<-chan struct{}) bool {
	for _, c := range all {
		select {
		case <-c:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// make sends an allowed call to its server and makes its result.
func (p *pending) make(ctx context.Context) *model.Result {
	began := time.Now()
	res, f := p.send(ctx)
	took := time.Since(began)
	outcome, why, class := Succeeded, "", ""
	var parts []model.Part
	switch {
	case f != nil:
		outcome, why, class = f.outcome(p.safe), clip(f.err.Error()), f.class()
		parts = append(parts, model.Part{Text: f.words(p)})
		if f.ran == certainly && res != nil {
			parts = append(parts, p.c.resultParts(ctx, p.tool, res)...)
		}
	case res.IsError:
		outcome, why, class = Failed, clip(res.Text()), "the tool answered with an error"
		fallthrough
	default:
		parts = p.c.resultParts(ctx, p.tool, res)
	}
	if outcome != Cancelled {
		over := p.event
		over.Outcome, over.Parts, over.Took = outcome, parts, Millis(took)
		parts = p.after(ctx, over)
	}
	doubtful := f != nil && f.ran != never && !p.safe
	p.c.recordDoubt(p.key, doubtful, outcome)
	r := p.end(ctx, outcome, why, class, took, parts...)
	r.Unknown = doubtful
	return r
}

func (p *pending) progressed(done, total float64, message string) {
	moved := p.event
	moved.Done, moved.Total = done, total
	p.c.tell(Event{Kind: Progress, Call: &moved, Text: clip(message)})
}

func (p *pending) logged(m mcp.LogMessage) {
	text := string(m.Data)
	if s, err := jsonx.Unquote(m.Data); err == nil {
		text = s
	}
	p.tell(Logged, level.Name(m.Level)+": "+clip(text))
}

// tell reports an event of the call.
func (p *pending) tell(k EventKind, text string) {
	e := p.event
	p.c.tell(Event{Kind: k, Call: &e, Text: text})
}

// refused makes the result of a call that was not made.
func (p *pending) refused(outcome Outcome, why, words string) *model.Result {
	return p.result(outcome, why, 0, model.Part{Text: words})
}

// result reports the end of the call and makes its result.
func (p *pending) result(outcome Outcome, why string, took time.Duration, parts ...model.Part) *model.Result {
	over := p.event
	over.Outcome, over.Parts, over.Took = outcome, parts, Millis(took)
	p.c.tell(Event{Kind: Resulted, Call: &over, Error: why})
	return &model.Result{ID: p.call.ID, Name: p.call.Name, Parts: parts, Error: outcome != Succeeded}
}

// clip bounds text from a peer or a model for use in a message.
func clip(s string) string { return text.Clip(s, 1000) }
