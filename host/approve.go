package host

import (
	"context"
	"fmt"
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
	byConversation = "conversation" // the person allowed the tool for this conversation
	byRule         = "rule"         // Host.Allow
	byReadOnly     = "read-only"    // a trusted server says so
	byAlways       = "always"       // the person allowed the tool permanently, and it has not changed
	byPerson       = "person"
	byNobody       = "nobody" // there is no Person, or Person failed
	byHost         = "host"   // the tool belongs to the host and needs no approval
)

// decision is the decision about a call.
type decision struct {
	allowed bool
	by      string
	reason  string // of a denial
	changed error  // the tool is not the one that the model was offered, so nothing was decided; nil: it is the same
}

// words returns what the model is told about a denial.
func (d decision) words() string {
	if d.by == byNobody {
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
	doubt := ""
	if !p.safe {
		doubt = p.c.doubtOf(p.key)
	}
	by, changed := p.c.allowedBy(p.tool, p.server)
	if by != "" && doubt == "" {
		return decision{allowed: true, by: by}
	}
	if p.c.h.Person == nil {
		reason := "there is nobody to ask, and no rule allows it"
		if doubt != "" {
			reason = doubt + ", and there is nobody to ask"
		}
		return decision{by: byNobody, reason: reason}
	}
	p.tell(Waiting, doubt)
	hints := p.tool.Annotations
	a := &Approval{
		Conversation: p.c.ID, Call: p.call.ID, Server: p.tool.Server, Tool: p.tool.Tool, Arguments: slices.Clone(p.args),
		ReadOnly: readOnly(p.tool.Tool), Destructive: !readOnly(p.tool.Tool) && (hints == nil || hints.Destructive == nil || *hints.Destructive),
		Trusted: p.server.Trusted, Changed: changed, Doubt: doubt,
	}
	v, err := ask(ctx, func() (Verdict, error) { return p.c.h.Person.Approve(ctx, a) })
	if err != nil {
		return decision{by: byNobody, reason: "the person cannot be asked: " + clip(err.Error())}
	}
	switch v.Answer {
	case AllowOnce:
	case AllowConversation:
		p.c.allow(p.tool, p.server)
	case AllowAlways:
		p.c.allow(p.tool, p.server)
		if kept := p.c.h.Approvals; kept != nil {
			if err := kept.Allow(p.server.Identity, p.server.Name, p.tool.Tool); err != nil {
				p.c.tell(Event{Kind: Noted, Text: "the approval holds for this conversation, but could not be stored:  " + err.Error()})
			}
		}
	default:
		return decision{by: byPerson, reason: v.Reason}
	}
	return decision{allowed: true, by: byPerson}
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

// AllowedBy returns the ground on which a tool may be called without asking: "conversation",
// "rule", "read-only" or "always". It is empty if the person is asked.
func (c *Conversation) AllowedBy(t Tool) string {
	s := c.h.named(t.Server)
	if s == nil {
		return ""
	}
	by, _ := c.allowedBy(t, s)
	return by
}

// Disallow withdraws the person's permission to call a tool in this conversation.
func (c *Conversation) Disallow(t Tool) {
	if s := c.h.named(t.Server); s != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.allowed, grantOf(t, s))
	}
}

func (c *Conversation) allowedBy(t Tool, s *server) (by, changed string) {
	c.mu.Lock()
	granted := c.allowed[grantOf(t, s)]
	c.mu.Unlock()
	switch {
	case granted:
		return byConversation, ""
	case c.h.allows(t.Server, t.Tool.Name):
		return byRule, ""
	case s.Trusted && readOnly(t.Tool):
		return byReadOnly, ""
	case c.h.Approvals == nil:
		return "", ""
	}
	ok, changed, err := c.h.Approvals.Allowed(s.Identity, t.Tool)
	switch {
	case err != nil:
		c.tell(Event{Kind: Noted, Text: "cannot read the permanent approvals: " + err.Error()})
	case ok:
		return byAlways, ""
	}
	return "", changed
}

// allow records that a tool, as it is defined now, is allowed until the conversation ends.
func (c *Conversation) allow(t Tool, s *server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allowed[grantOf(t, s)] = true
}

// grantOf returns the key under which a tool is allowed. It changes with the definition of the
// tool.
func grantOf(t Tool, s *server) string {
	return fmt.Sprintf("%q %q %s", s.Name, s.Identity, approval.Hash(t.Tool))
}

// allows reports whether a rule allows a tool. The part of a pattern before the slash is matched
// against the server name only, so a tool cannot pass for one of another server. If server names
// contain slashes and a pattern can be read in two ways, the longer server name counts.
func (h *Host) allows(server, tool string) bool {
	for _, pattern := range h.Allow {
		if pattern == "*" {
			return true
		}
		for i := range len(pattern) {
			if pattern[i] == '/' && wildcard.Match(pattern[:i], server) && wildcard.Match(pattern[i+1:], tool) && !h.meansLonger(pattern, i) {
				return true
			}
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
