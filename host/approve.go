package host

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/mcp"
)

// These are the grounds of a decision, in the order in which they are tried. If a call may already
// have run because its answer was lost, only the person can allow it again, unless the server is
// trusted and its hints say that a repetition does no harm.
const (
	byConversation = "conversation" // the person allowed it for this conversation
	byRule         = "rule"         // Host.Allow, or a rule of Person
	byReadOnly     = "read-only"    // a trusted server says so
	byAlways       = "always"       // the person allowed it permanently, and the tool has not changed
	byPerson       = "person"
	byNobody       = "nobody" // there is no Person, or Person failed
	byHost         = "host"   // the tool belongs to the host and needs no approval
	byMode         = "mode"   // Settings.Mode refuses it
	byHook         = "hook"   // one of Host.Hooks refuses it
)

// decision is the decision about a call.
type decision struct {
	allowed bool
	by      string
	rule    string // the rule that allows it; empty: by says it all
	reason  string // of a denial
	changed error  // the tool is not the one that the model was offered, so nothing was decided; nil: it is the same
}

// words returns what the model is told about a denial.
func (d decision) words() string {
	switch d.by {
	case byMode:
		return sayMode
	case byHook:
		return "It was not called: " + d.reason + sayHook
	case byNobody:
		return "It was not called: " + d.reason + ". Do not try it again; go on without it, or say what is missing."
	}
	text := "The person did not allow this call. Do not try it again unless they ask for it."
	if d.reason != "" {
		text += " Reason: " + d.reason
	}
	return text
}

// decide returns the decision about the call. If ctx ends first, the call is not allowed.
func (p *pending) decide(ctx context.Context) decision {
	if !wait(ctx, p.asksAfter...) {
		return decision{}
	}
	if p.server == nil {
		return decision{allowed: true, by: byHost}
	}
	if err := p.unchanged(ctx); err != nil {
		return decision{changed: err}
	}
	if p.c.Mode.refuses(p.tool) {
		return decision{by: byMode, reason: whyMode}
	}
	if err := p.before(ctx); err != nil {
		return decision{by: byHook, reason: clip(err.Error())}
	}
	doubt := ""
	if !p.safe {
		doubt = p.c.doubtOf(p.key)
	}
	a := p.approvalOf(slices.Clone(p.args))
	granted := p.c.nextGrant()
	g := p.c.ground(ctx, a, p.server)
	if g.by != "" && doubt == "" {
		return decision{allowed: true, by: g.by, rule: g.rule}
	}
	nobody := decision{by: byNobody, reason: "there is nobody to ask, and no rule allows it"}
	switch {
	case doubt != "":
		nobody.reason = doubt + ", and there is nobody to ask"
	case g.changed != "":
		nobody.reason = "the tool has changed since it was allowed (" + g.changed + "), and there is nobody to ask"
	}
	if p.c.h.Person == nil {
		return nobody
	}
	p.tell(Waiting, doubt)
	a.Changed, a.Before, a.Doubt = g.changed, g.before, doubt
	if all, err := p.c.h.toolsOf(ctx, p.server, againTime); err == nil {
		for _, t := range all {
			if p.c.h.enabled(p.server, t.Tool.Name) {
				a.Tools = append(a.Tools, t.Tool)
			}
		}
	}
	asking, withdraw := context.WithCancelCause(ctx)
	defer withdraw(nil)
	if doubt == "" {
		go func() { // ends with the question
			for asking.Err() == nil {
				select {
				case <-granted:
				case <-asking.Done():
					return
				}
				granted = p.c.nextGrant()
				if now := p.c.ground(asking, a, p.server); now.by != "" {
					g = now
					withdraw(errAllowed)
				}
			}
		}()
	}
	v, err := ask(asking, func() (Verdict, error) { return p.c.h.Person.Approve(asking, a) })
	switch {
	case context.Cause(asking) == errAllowed:
		return decision{allowed: true, by: g.by, rule: g.rule}
	case errors.Is(err, ErrNobody):
		return nobody
	case err != nil:
		return decision{by: byNobody, reason: "the person cannot be asked: " + clip(err.Error())}
	}
	d := decision{allowed: true, by: byPerson, rule: v.Rule}
	if v.Rule != "" {
		d.by = byRule
	}
	switch v.Answer {
	case AllowOnce:
	case AllowConversation, AllowAlways:
		tools, err := a.Covers(ctx, v)
		if err != nil {
			p.c.tell(Event{Kind: Noted, Text: "only this call is allowed: " + clip(err.Error())})
			break
		}
		rule := approval.Rule{When: v.When}
		if v.Tools != "" || v.When != "" {
			rule.Text = ruleText(a.Server, cmp.Or(v.Tools, a.Tool.Name), v.When)
		}
		d.rule = cmp.Or(d.rule, rule.Text)
		if err := p.c.grant(p.server, rule, tools, v.Answer); err != nil {
			p.c.tell(Event{Kind: Noted, Text: "the approval holds for this conversation, but could not be stored: " + err.Error()})
		}
	default:
		return decision{by: d.by, rule: v.Rule, reason: v.Reason}
	}
	return d
}

// errAllowed says that a question is void because another answer of the person has allowed the call.
var errAllowed = errors.New("allowed meanwhile")

// nextGrant returns a channel that is closed when the person allows something in this conversation.
func (c *Conversation) nextGrant() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.granted
}

// ask calls person and returns its answer, or the cause of ctx if that ends first.
func ask[A any](ctx context.Context, person func() (A, error)) (A, error) {
	type answer struct {
		a   A
		err error
	}
	answers := make(chan answer, 1)
	go func() { // ends when person returns, which it should when ctx ends
		a, err := person()
		answers <- answer{a, err}
	}()
	select {
	case got := <-answers:
		return got.a, got.err
	case <-ctx.Done():
		var none A
		return none, context.Cause(ctx)
	}
}

// AllowedBy returns the ground on which any call of a tool may be made without asking: "conversation",
// "rule", "read-only" or "always". It is empty if the person is asked, the mode refuses it, or it depends
// on the arguments.
func (c *Conversation) AllowedBy(t Tool) string {
	s := c.h.named(t.Server)
	if s == nil || c.Mode.refuses(t) {
		return ""
	}
	return c.ground(context.Background(), &Approval{Server: t.Server, Tool: t.Tool}, s).by
}

// allows reports whether a pattern allows a tool. The part of a pattern before the slash is matched
// against the server name only, so a tool cannot pass for one of another server. If server names
// contain slashes and a pattern can be read in two ways, the longer server name counts.
func (h *Host) allows(pattern, server, tool string) bool {
	if pattern == "*" {
		return true
	}
	for i := range len(pattern) {
		if pattern[i] == '/' && wildcard.Match(pattern[:i], server) && wildcard.Match(pattern[i+1:], tool) && !h.meansLonger(pattern, i) {
			return true
		}
	}
	return false
}

// meansLonger reports whether a pattern begins with the name of a server that contains the slash at
// i.
func (h *Host) meansLonger(pattern string, i int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.servers, func(s *server) bool {
		return len(s.Name) > i && strings.HasPrefix(pattern, s.Name+"/")
	})
}

// readOnly reports whether the server declares the tool read-only.
func readOnly(t *mcp.Tool) bool {
	return t.Annotations != nil && t.Annotations.ReadOnly != nil && *t.Annotations.ReadOnly
}

// idempotent reports whether the server declares that repeating a call has no further effect.
func idempotent(t *mcp.Tool) bool {
	return t.Annotations != nil && t.Annotations.Idempotent != nil && *t.Annotations.Idempotent
}

// writes reports whether the server declares explicitly that the tool is not read-only. Most
// servers declare nothing.
func writes(t *mcp.Tool) bool {
	return t.Annotations != nil && t.Annotations.ReadOnly != nil && !*t.Annotations.ReadOnly
}

// audited reports the outcome of the call to Host.Audit. A failure is noted but does not change the
// outcome.
func (p *pending) audited(ctx context.Context, d Decision) {
	if _, err := p.audit(ctx, d); err != nil {
		p.c.tell(Event{Kind: Noted, Text: "the audit log lacks the outcome of a call: " + err.Error()})
	}
}

// audit passes a decision to Host.Audit, if the call concerns a server, and returns the context of
// the call.
func (p *pending) audit(ctx context.Context, d Decision) (context.Context, error) {
	if p.c.h.Audit == nil || p.server == nil {
		return ctx, nil
	}
	d.Time, d.Conversation, d.Call = time.Now(), p.c.ID, p.call.ID
	d.Server, d.Identity, d.Tool, d.Arguments = p.tool.Server, p.server.Identity, p.tool.Tool.Name, p.args
	d.Definition = "sha256:" + approval.Hash(p.tool.Tool)
	p.c.h.auditing.Lock()
	defer p.c.h.auditing.Unlock()
	return p.c.h.Audit(ctx, d)
}

// recall finds the calls of a resumed conversation whose outcome is in doubt. A call without a
// result was in progress when the program ended, and may have run. Recall skips the newest entries,
// which hold the calls that are about to be made.
func (c *Conversation) recall(tools []Tool, newest int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doubts != nil {
		return
	}
	c.doubts = map[string]string{}
	var calls []*model.Call // of the last answer, still without a result
	lost := func() {
		for _, call := range calls {
			c.doubts[c.h.keyOf(call, tools)] = doubtText(Unknown)
		}
		calls = nil
	}
	for _, e := range c.Entries[:len(c.Entries)-newest] {
		if e.Role == model.Assistant {
			lost()
			calls = e.Calls()
			continue
		}
		for _, part := range e.Parts {
			if part.Result == nil {
				continue
			}
			at := slices.IndexFunc(calls, func(call *model.Call) bool { return call.ID == part.Result.ID })
			switch {
			case at < 0:
				continue
			case part.Result.Unknown:
				c.doubts[c.h.keyOf(calls[at], tools)] = doubtText(Unknown)
			case !part.Result.Error && len(c.doubts) > 0:
				delete(c.doubts, c.h.keyOf(calls[at], tools))
			}
			calls = slices.Delete(calls, at, at+1)
		}
	}
	lost()
}

// keyOf returns the callKey of an earlier call, as far as its tool and arguments can still be
// resolved.
func (h *Host) keyOf(call *model.Call, tools []Tool) string {
	if t, args, _, wrong := h.resolve(call, tools); wrong == "" {
		return callKey(t.Name, args)
	}
	return callKey(call.Name, repaired(call.Arguments))
}

// doubtOf returns the reason to ask the person about a call that is otherwise allowed; empty: none.
func (c *Conversation) doubtOf(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doubts[key]
}

// recordDoubt records whether the outcome of a call is in doubt.
func (c *Conversation) recordDoubt(key string, doubtful bool, outcome Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case doubtful:
		c.doubts[key] = doubtText(outcome)
	case outcome == Succeeded || outcome == Failed:
		delete(c.doubts, key)
	}
}

// doubtText returns the reason for asking the person again.
func doubtText(o Outcome) string {
	switch o {
	case Cancelled:
		return "the same call was cancelled while it ran, and may have happened"
	case Failed:
		return "the same call failed after the server had begun with it, and may have happened in part"
	case Broken:
		return "the same call has run, and its answer could not be used"
	}
	return "the answer to the same call was lost, and it may have happened"
}
