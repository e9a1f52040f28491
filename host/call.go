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
)

// What becomes of the calls of one answer:
//
//   - They run at the same time, but for those that depend on each other: a tool that its server
//     says is not read-only comes after the calls of that server before it, and before those
//     after it; and of two calls that are the same the second waits for the first.
//   - The person is asked about the calls of one tool one after the other, in the order of the
//     model, so that an answer for the whole conversation does for those that wait.
//   - Only calls that run count for Limits.Parallel, not those that wait for the person.

// pending is a call of the model on its way to its result.
type pending struct {
	c      *Conversation
	call   *model.Call
	tool   Tool
	server *server
	args   json.RawMessage // as they are shown and sent: an object that fits the schema, in one line
	key    string          // the same for the same call
	safe   bool            // it can be made twice without harm: so says a server that is trusted
	event  CallEvent       // what all events of the call have

	asksAfter []<-chan struct{} // closed when calls that are decided about first have been
	runsAfter []<-chan struct{} // closed when calls that it waits for are over
	decided   chan struct{}
	over      chan struct{}
}

// run makes the calls of an answer and returns one result for each, in their order.
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

// line is the order in which the calls of an answer wait for each other. Each waits only for
// those before it, so that none waits for ever.
type line struct {
	asked   map[string]*pending // the last call of each tool
	same    map[string]*pending // the last of those that are the same
	servers map[string]*traffic
}

// traffic is what goes on at one server.
type traffic struct {
	write <-chan struct{}   // closed when the last call that changes something is over; nil: there was none
	since []<-chan struct{} // those that came after it
}

func (l *line) join(p *pending) {
	tool := p.tool.Server + "/" + p.tool.Tool.Name
	if before := l.asked[tool]; before != nil {
		p.asksAfter = append(p.asksAfter, before.decided)
	}
	l.asked[tool] = p
	if before := l.same[p.key]; before != nil {
		p.asksAfter = append(p.asksAfter, before.over) // what came of it may be a reason to ask
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

// prepare finds the tool of a call and makes its arguments fit to be sent. What cannot be called
// has its result at once.
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
			return nil, p.refused(Broken, "the server was removed", fmt.Sprintf("The server %q is not there any more, and its tools with it. Go on without them.", clip(t.Server)))
		}
		p.safe = p.server.Trusted && (readOnly(t.Tool) || idempotent(t.Tool))
	}
	p.decided, p.over = make(chan struct{}), make(chan struct{})
	return p, nil
}

// resolve finds the tool that a call is about, and arguments that fit it. If it cannot be called
// it says why, and tells the model.
func (h *Host) resolve(call *model.Call, tools []Tool) (t Tool, args json.RawMessage, why, words string) {
	at := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == call.Name })
	if at < 0 {
		return t, nil, "there is no such tool", unknownTool(call.Name, tools)
	}
	t = tools[at]
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

// callKey is the same for calls of one tool whose arguments mean the same.
func callKey(name string, args json.RawMessage) string {
	return name + " " + string(jsonx.Canonical(args))
}

// unknownTool tells the model which tools it may have meant.
func unknownTool(name string, tools []Tool) string {
	text := fmt.Sprintf("There is no tool %q.", clip(name))
	if near := nearest(name, tools); len(near) > 0 {
		return text + " Did you mean " + strings.Join(near, " or ") + "? Nothing was called."
	}
	return text + " The tools are those that were listed; nothing was called."
}

// nearest returns the names, at most three, that one may have meant who wrote another.
func nearest(name string, tools []Tool) []string {
	type guess struct {
		name     string
		distance int
	}
	var guesses []guess
	lower := strings.ToLower(name)
	for _, t := range tools {
		full, bare := strings.ToLower(t.Name), strings.ToLower(t.Tool.Name)
		d := min(spelling.Distance(lower, full), spelling.Distance(lower, bare)) // some forget the server
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

// run has the call decided about and makes it.
func (p *pending) run(ctx context.Context, slots chan struct{}) *model.Result {
	defer close(p.over)
	d := p.decide(ctx)
	close(p.decided)
	switch {
	case ctx.Err() != nil:
		p.audited(Decision{By: byNobody, Outcome: Cancelled, Reason: context.Cause(ctx).Error()})
		return p.refused(Cancelled, context.Cause(ctx).Error(), cancelledBefore)
	case d.changed != nil:
		f := &fault{kind: outdated, err: d.changed}
		p.audited(Decision{By: byNobody, Outcome: Broken, Reason: f.class()})
		return p.refused(Broken, d.changed.Error(), f.words(p))
	case !d.allowed:
		p.audited(Decision{By: d.by, Outcome: Denied, Reason: d.reason})
		p.event.By = d.by
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
	p.event.By = d.by
	if err := p.audit(Decision{Allowed: true, By: d.by}); err != nil {
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

// left is the result of a call that was allowed and then cancelled before it began.
func (p *pending) left(ctx context.Context, d decision) *model.Result {
	p.audited(Decision{Allowed: true, By: d.by, Outcome: Cancelled, Reason: context.Cause(ctx).Error()})
	return p.refused(Cancelled, context.Cause(ctx).Error(), cancelledBefore)
}

// do makes a call of a tool of the host itself.
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
	return p.end(outcome, why, class, time.Since(began), parts...)
}

// end audits what came of a call that began, and makes its result. Class is what the audit log is
// told of why.
func (p *pending) end(outcome Outcome, why, class string, took time.Duration, parts ...model.Part) *model.Result {
	p.audited(Decision{Allowed: true, By: p.event.By, Outcome: outcome, Reason: class, Cached: p.event.Cached, Took: took})
	return p.result(outcome, why, took, parts...)
}

// wait waits until all channels are closed; false if the context ends first.
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

// make makes a call that was allowed, and tells what came of it.
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
			parts = append(parts, p.c.resultParts(p.tool, res)...)
		}
	case res.IsError:
		outcome, why, class = Failed, clip(res.Text()), "the tool answered with an error"
		fallthrough
	default:
		parts = p.c.resultParts(p.tool, res)
	}
	doubtful := f != nil && f.ran != never && !p.safe
	p.c.doubt(p.key, doubtful, outcome)
	r := p.end(outcome, why, class, took, parts...)
	r.Unknown = doubtful
	return r
}

func (p *pending) progressed(e mcp.ProgressEvent) {
	moved := p.event
	moved.Done, moved.Total = e.Done, e.Total
	p.c.tell(Event{Kind: Progress, Call: &moved, Text: clip(e.Message)})
}

func (p *pending) logged(m mcp.LogMessage) {
	text := string(m.Data)
	if s, err := jsonx.Unquote(m.Data); err == nil {
		text = s
	}
	p.tell(Logged, strings.ToLower(m.Level.String())+": "+clip(text))
}

// tell tells of the call.
func (p *pending) tell(k EventKind, text string) {
	e := p.event
	p.c.tell(Event{Kind: k, Call: &e, Text: text})
}

// refused is the result of what was not called.
func (p *pending) refused(outcome Outcome, why, words string) *model.Result {
	return p.result(outcome, why, 0, model.Part{Text: words})
}

// result tells of the end of a call, and makes its result.
func (p *pending) result(outcome Outcome, why string, took time.Duration, parts ...model.Part) *model.Result {
	over := p.event
	over.Outcome, over.Parts, over.Took = outcome, parts, took
	p.c.tell(Event{Kind: Resulted, Call: &over, Error: why})
	return &model.Result{ID: p.call.ID, Name: p.call.Name, Parts: parts, Error: outcome != Succeeded}
}

// clip bounds text of others, for words about it.
func clip(s string) string { return text.Clip(s, 1000) }
