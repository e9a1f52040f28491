package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A rule allows calls without asking. There are two kinds:
//
//   - The rules of Allow are about names: "SERVER/TOOL" allows a tool however it is defined. With a condition,
//     "SERVER/TOOL if CONDITION", they hold for tools as their server first listed them.
//   - What a person allows, for a tool, a server or under a condition, holds for the tools that there are at that
//     moment, as they are then defined.
//
// So a server cannot bring a new tool, or a changed one, under a rule that a person has made: a condition is about
// the arguments of a tool, and a class of tools is what the server says of them.

// Condition reports whether a call fits the condition of a rule. The Approval has the server, the tool and the
// arguments; if Arguments is nil, the question is whether a call with some arguments may fit. With an error the call
// does not fit. It is called by several goroutines at once.
type Condition func(ctx context.Context, a *Approval) (bool, error)

// maxConditions bounds the compiled conditions of a host.
const maxConditions = 1000

// fits reports whether a call fits a condition; an empty one fits every call.
func (h *Host) fits(ctx context.Context, when string, a *Approval) (bool, error) {
	if when == "" {
		return true, nil
	}
	if h == nil || h.Condition == nil {
		return false, errors.New("rules with conditions need Host.Condition")
	}
	h.mu.Lock()
	c := h.conditions[when]
	h.mu.Unlock()
	if c == nil {
		var err error
		if c, err = h.Condition(when); err != nil {
			return false, err
		}
		h.mu.Lock()
		if h.conditions == nil || len(h.conditions) >= maxConditions {
			h.conditions = map[string]Condition{}
		}
		h.conditions[when] = c
		h.mu.Unlock()
	}
	return c(ctx, a)
}

// Covers returns the tools for which a Verdict with AllowConversation or AllowAlways would allow calls from then
// on, among Tools. The error says why it would allow nothing but this call: its rule is for other calls, or the
// condition cannot be evaluated.
func (a *Approval) Covers(ctx context.Context, v Verdict) ([]*mcp.Tool, error) {
	tools := a.Tools
	if v.Tools == "" {
		tools = []*mcp.Tool{a.Tool}
	}
	ok, err := a.h.fits(ctx, v.When, a)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the condition: %w", err)
	case !ok:
		return nil, errors.New("the condition does not hold for this call")
	case v.Tools != "" && !wildcard.Match(v.Tools, a.Tool.Name):
		return nil, fmt.Errorf("%q does not match this tool", v.Tools)
	}
	var covered []*mcp.Tool
	for _, t := range tools {
		if (v.Tools == "" || wildcard.Match(v.Tools, t.Name)) && a.h.mayFit(ctx, v.When, a.Server, t) == nil {
			covered = append(covered, t)
		}
	}
	return covered, nil
}

// mayFit returns why no call of a tool can fit a condition; nil: some may.
func (h *Host) mayFit(ctx context.Context, when, server string, t *mcp.Tool) error {
	ok, err := h.fits(ctx, when, &Approval{Server: server, Tool: t, ReadOnly: readOnly(t)})
	if err == nil && !ok {
		return errors.New("the condition does not hold")
	}
	return err
}

// ruleText returns a rule for people, and for the audit log.
func ruleText(server, tool, when string) string {
	text := server + "/" + tool
	if when != "" {
		text += " if " + when
	}
	return text
}

// Permit allows calls without asking, as the person says: calls of the tools that match SERVER/TOOL, where *
// matches any text, and that fit the condition, if there is one. It returns the tools. They are those that the servers
// list now, as they are defined now; a tool that is new or has changed is asked about. The answer is
// AllowConversation or AllowAlways. If an error prevents that, nothing is allowed, except that after an error of
// Host.Approvals it is allowed in this conversation.
func (c *Conversation) Permit(ctx context.Context, tools, when string, answer Answer) ([]Tool, error) {
	if answer != AllowConversation && answer != AllowAlways {
		return nil, fmt.Errorf("Permit needs AllowConversation or AllowAlways, not %d", answer)
	}
	var named, covered []Tool
	var why error
	for _, t := range c.h.Tools(ctx) {
		if !c.h.allows(tools, t.Server, t.Tool.Name) {
			continue
		}
		named = append(named, t)
		if err := c.h.mayFit(ctx, when, t.Server, t.Tool); err != nil {
			why = err
			continue
		}
		covered = append(covered, t)
	}
	switch {
	case len(named) == 0:
		return nil, fmt.Errorf("no tool that is available now matches %q", tools)
	case len(covered) == 0:
		return nil, fmt.Errorf("`%s` allows no call: %w", ruleText("", tools, when)[1:], why)
	}
	byServer := map[*server][]*mcp.Tool{}
	for _, t := range covered {
		if s := c.h.named(t.Server); s != nil {
			byServer[s] = append(byServer[s], t.Tool)
		}
	}
	var errs []error
	for s, list := range byServer {
		errs = append(errs, c.grant(s, approval.Rule{Text: ruleText("", tools, when)[1:], When: when}, list, answer))
	}
	return covered, errors.Join(errs...)
}

// grant records that tools of a server, as they are defined now, are allowed until the conversation ends, or
// always.
func (c *Conversation) grant(s *server, rule approval.Rule, tools []*mcp.Tool, answer Answer) error {
	var list []approval.Approval
	for _, t := range tools {
		a, err := approval.Of(s.Identity, s.Name, rule, t)
		if err != nil {
			return err
		}
		list = append(list, a)
	}
	c.mu.Lock()
	c.grants = approval.With(c.grants, list...)
	close(c.granted)
	c.granted = make(chan struct{})
	c.mu.Unlock()
	if c.h.Approvals == nil || answer != AllowAlways {
		return nil
	}
	return c.h.Approvals.Allow(list...)
}

// Grants returns what the person has allowed in this conversation, the oldest first: a tool as it was then, and
// the rule. It may be called at any time.
func (c *Conversation) Grants() []approval.Approval {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.grants)
}

// Revoke withdraws the grants for which the function returns true, in this conversation. Calls in progress go on.
func (c *Conversation) Revoke(which func(approval.Approval) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grants = slices.DeleteFunc(slices.Clone(c.grants), which)
}

// ground is the ground on which a call is made without asking.
type ground struct {
	by   string // empty: there is none
	rule string

	changed string // if there is none: what has changed since the tool was allowed
	before  *mcp.Tool
}

// ground returns the ground for a call, or for every call of a tool if the Approval has no arguments.
func (c *Conversation) ground(ctx context.Context, a *Approval, s *server) ground {
	c.mu.Lock()
	grants := c.grants // never modified
	c.mu.Unlock()
	var g ground
	add := func(by string, found approval.Found) bool {
		for _, r := range found.Rules {
			if c.fits(ctx, r.When, a) {
				g = ground{by: by, rule: r.Text}
				if r.Text == "" {
					g.rule = ruleText(a.Server, a.Tool.Name, r.When)
				}
				return true
			}
		}
		if g.changed == "" {
			g.changed, g.before = found.Changed, found.Before
		}
		return false
	}
	named := func(by string, rules []string) bool {
		for _, r := range rules {
			tools, when, conditional := strings.Cut(r, " if ")
			if !c.h.allows(tools, a.Server, a.Tool.Name) {
				continue
			}
			if conditional && strings.TrimSpace(when) == "" { // perhaps of a variable that is empty
				c.tell(Event{Kind: Noted, Text: fmt.Sprintf("the rule %q allows nothing, as its condition is empty", clip(r))})
				continue
			}
			found := approval.Found{Rules: []approval.Rule{{Text: r, When: when}}}
			if when != "" {
				found.Rules, found.Changed, found.Before = s.asFirst(found.Rules, a.Tool)
			}
			if add(by, found) {
				return true
			}
		}
		return false
	}
	found, err := approval.Find(grants, s.Identity, a.Tool)
	if err == nil && add(byConversation, found) || named(byConversation, c.Allow) || named(byRule, c.h.Allow) {
		return g
	}
	if s.Trusted && readOnly(a.Tool) {
		return ground{by: byReadOnly}
	}
	if c.h.Approvals != nil {
		found, err := c.h.Approvals.Find(s.Identity, a.Tool)
		if err != nil {
			c.tell(Event{Kind: Noted, Text: "cannot read the permanent approvals: " + err.Error()})
			return g
		}
		add(byAlways, found)
	}
	return g
}

// fits reports whether a call fits a condition. An error is noted. Without arguments, only no condition fits.
func (c *Conversation) fits(ctx context.Context, when string, a *Approval) bool {
	if when == "" || a.Arguments == nil {
		return when == ""
	}
	ok, err := c.h.fits(ctx, when, a)
	if err != nil {
		c.tell(Event{Kind: Noted, Text: fmt.Sprintf("the condition %q does not allow the call of %s: %s", clip(when), ruleText(a.Server, a.Tool.Name, ""), clip(err.Error()))})
	}
	return ok && err == nil
}

// asFirst returns rules if a tool is the one that its server first listed, or else what differs.
func (s *server) asFirst(rules []approval.Rule, t *mcp.Tool) (hold []approval.Rule, changed string, before *mcp.Tool) {
	s.mu.Lock()
	first := s.first
	s.mu.Unlock()
	at := slices.IndexFunc(first, func(f Tool) bool { return f.Tool.Name == t.Name })
	switch {
	case at < 0:
		return nil, "", nil
	case first[at].Tool == t:
		return rules, "", nil
	}
	a, err := approval.Of(s.Identity, s.Name, approval.Rule{}, first[at].Tool)
	if err != nil {
		return nil, "", nil
	}
	if changed, before = a.Differs(t); changed == "" {
		return rules, "", nil
	}
	return nil, changed, before
}

// seen records the tools that the server lists first.
func (s *server) seen(tools []Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		s.first = append(make([]Tool, 0, len(tools)), tools...)
	}
}

// approvalOf returns the question about a call.
func (p *pending) approvalOf(args json.RawMessage) *Approval {
	hints := p.tool.Annotations
	return &Approval{
		Conversation: p.c.ID, Call: p.call.ID, Server: p.tool.Server, Tool: p.tool.Tool, Arguments: args,
		ReadOnly: readOnly(p.tool.Tool), Destructive: !readOnly(p.tool.Tool) && (hints == nil || hints.Destructive == nil || *hints.Destructive),
		Trusted: p.server.Trusted, h: p.c.h,
	}
}
