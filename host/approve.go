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

// Who may allow a call, in this order. A call that may have run already, though its answer was
// lost, can be allowed by the person alone.
const (
	byConversation = "conversation" // the person has allowed the tool until the end of it
	byRule         = "rule"         // Host.Allow
	byReadOnly     = "read-only"    // so says a server that is trusted
	byAlways       = "always"       // the person has allowed the tool for ever, and it has not changed
	byPerson       = "person"
	byNobody       = "nobody" // there is no person, or they cannot be asked
	byHost         = "host"   // the call concerns no server
)

// decision is what was decided about a call.
type decision struct {
	allowed bool
	by      string
	reason  string // of a denial
	changed error  // why nothing was decided: the tool is not what the model was offered; nil: it is
}

// words tell the model of a denial.
func (d decision) words() string {
	if d.by == byNobody {
		return "It was not called: " + d.reason + ". Do not try it again; go on without it, or say what is missing."
	}
	text := "The person did not allow this call. Do not try it again unless they ask for it."
	if d.reason != "" {
		text += " They said: " + d.reason
	}
	return text
}

// decide has the call decided about. If ctx ends it is denied.
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
				p.c.tell(Event{Kind: Noted, Text: "the approval holds for this conversation, but could not be kept: " + err.Error()})
			}
		}
	default:
		return decision{by: byPerson, reason: v.Reason}
	}
	return decision{allowed: true, by: byPerson}
}

// ask asks the person, and waits no longer than ctx, whatever they do.
func ask[A any](ctx context.Context, person func() (A, error)) (A, error) {
	type answer struct {
		a   A
		err error
	}
	answers := make(chan answer, 1)
	go func() { // ended by the person, whose question is over with ctx
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

// AllowedBy tells who allows a tool to be called without asking: "conversation", "rule",
// "read-only" or "always"; empty: the person is asked.
func (c *Conversation) AllowedBy(t Tool) string {
	s := c.h.named(t.Server)
	if s == nil {
		return ""
	}
	by, _ := c.allowedBy(t, s)
	return by
}

// Disallow takes back that the person has allowed a tool until the end of the conversation.
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
		c.tell(Event{Kind: Noted, Text: "what was allowed for ever cannot be read: " + err.Error()})
	case ok:
		return byAlways, ""
	}
	return "", changed
}

// allow takes note that a tool is allowed until the end of the conversation, as long as it is as
// it is now.
func (c *Conversation) allow(t Tool, s *server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allowed[grantOf(t, s)] = true
}

// grantOf is what a tool is allowed under: another tool of that name is another.
func grantOf(t Tool, s *server) string {
	return fmt.Sprintf("%q %q %s", s.Name, s.Identity, approval.Hash(t.Tool))
}

// allows tells whether a rule allows a tool. What stands before the slash of a pattern is held
// against the name of the server alone, so that no tool can pass for one of another server. Where
// names of servers have slashes and a pattern can be read in two ways, it is about the server
// with the longer name.
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

// meansLonger tells whether a pattern names a server of the host that goes on after its slash at i.
func (h *Host) meansLonger(pattern string, i int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.servers, func(s *server) bool {
		return len(s.Name) > i && strings.HasPrefix(pattern, s.Name+"/")
	})
}

// readOnly tells whether a tool changes nothing, as its server says.
func readOnly(t *mcp.Tool) bool {
	return t.Annotations != nil && t.Annotations.ReadOnly != nil && *t.Annotations.ReadOnly
}

// idempotent tells whether a second call of a tool changes no more than the first has, as its
// server says.
func idempotent(t *mcp.Tool) bool {
	return t.Annotations != nil && t.Annotations.Idempotent != nil && *t.Annotations.Idempotent
}

// writes tells whether a server says of a tool that it changes something. Of most tools nothing
// is said.
func writes(t *mcp.Tool) bool {
	return t.Annotations != nil && t.Annotations.ReadOnly != nil && !*t.Annotations.ReadOnly
}

// audited tells Host.Audit what came of the call, which does not depend on it.
func (p *pending) audited(d Decision) {
	if err := p.audit(d); err != nil {
		p.c.tell(Event{Kind: Noted, Text: "the audit log lacks what came of a call: " + err.Error()})
	}
}

// audit tells Host.Audit about a call that concerns a server.
func (p *pending) audit(d Decision) error {
	if p.c.h.Audit == nil || p.server == nil {
		return nil
	}
	d.Time, d.Conversation, d.Call = time.Now(), p.c.ID, p.call.ID
	d.Server, d.Identity, d.Tool, d.Arguments = p.tool.Server, p.server.Identity, p.tool.Tool.Name, p.args
	p.c.h.auditing.Lock()
	defer p.c.h.auditing.Unlock()
	return p.c.h.Audit(d)
}

// recall finds out about calls of a conversation that is resumed. One without a result may have
// run too: it was under way when the program ended. The newest entries are left out, whose calls are
// about to be made.
func (c *Conversation) recall(tools []Tool, newest int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doubts != nil {
		return
	}
	c.doubts = map[string]string{}
	var calls []*model.Call // of the last answer, that have no result
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

// keyOf is the callKey of a call that was made, as far as that can be found out.
func (h *Host) keyOf(call *model.Call, tools []Tool) string {
	if t, args, _, wrong := h.resolve(call, tools); wrong == "" {
		return callKey(t.Name, args)
	}
	return callKey(call.Name, repaired(call.Arguments))
}

// doubtOf returns why a call must not be made without asking, empty if there is no reason.
func (c *Conversation) doubtOf(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doubts[key]
}

// doubt takes note of what is known of a call that was made.
func (c *Conversation) doubt(key string, doubtful bool, outcome Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case doubtful:
		c.doubts[key] = doubtText(outcome)
	case outcome == Succeeded || outcome == Failed:
		delete(c.doubts, key)
	}
}

// doubtText words why the person is asked.
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
