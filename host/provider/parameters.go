package provider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/providers"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// effort returns how much the model is to think; empty: as it does by default.
func (c *client) effort(req *model.Request) model.Effort {
	if req.Effort != "" {
		return req.Effort
	}
	return c.thinks
}

// An effort is refused as a value: the model may take another.
func noEffort(e model.Effort) string { return "effort " + string(e) }

// samples reports whether requests have a temperature and top_p: models that reason refuse both.
func (c *client) samples(req *model.Request) bool {
	return !c.reasons() || c.effort(req) == model.NoEffort
}

// chatEffort sets the members that say how much the model thinks.
func (c *client) chatEffort(p *chatRequest, e model.Effort) {
	switch {
	case c.line.Disables && e == model.NoEffort:
		p.Thinking = &thinking{Type: "disabled"}
	case c.line.Effort != "":
		p.more = members{c.line.Effort: effortObject(e)}
	default:
		p.ReasoningEffort = e
	}
}

func effortObject(e model.Effort) json.RawMessage {
	object, _ := encode(responseEffort{e}) // does not fail
	return object
}

// thinking is the member with which some APIs turn thinking on or off.
type thinking struct {
	Type    string `json:"type"`
	Budget  int64  `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

// Refusals of forms of thinking in Messages. Claude models before 4.6 think within a budget of tokens,
// later ones as they see fit, and since 4.7 they refuse a budget
// (https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking).
const (
	noAdaptive = "thinking.adaptive"
	noBudget   = "thinking.enabled"
	noDisplay  = "thinking.display"
	noLevel    = "output_config.effort"
)

// minBudget is the smallest budget of tokens for thinking that the API takes.
const minBudget = 1024

var budgets = map[model.Effort]int64{
	model.MinimalEffort: minBudget, model.LowEffort: 2048, model.MediumEffort: 8192, model.HighEffort: 16_384, model.XHighEffort: 24_576, model.MaxEffort: 32_000,
}

// budgeted reports whether a model is known to think only within a budget.
func budgeted(id string) bool {
	for _, family := range []string{"claude-3", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5", "claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5", "claude-haiku-4-5"} {
		if strings.HasPrefix(id, family) {
			return true
		}
	}
	return false
}

// think sets the members that say how much the model thinks, and removes what the API refuses beside
// them.
func (c *messages) think(p *messagesRequest, e model.Effort, refused refusals) {
	forced := p.ToolChoice != nil && (p.ToolChoice.Type == "any" || p.ToolChoice.Type == "tool")
	adaptive := !refused[noAdaptive] && (!budgeted(c.id) || refused[noBudget])
	switch {
	case e == model.NoEffort:
		p.Thinking = &thinking{Type: "disabled"}
		return
	case forced: // the API refuses both together
		return
	case adaptive:
		p.Thinking = &thinking{Type: "adaptive"}
		if !refused[noDisplay] {
			p.Thinking.Display = "summarized" // else models since 4.7 send empty thoughts
		}
		if e == model.MinimalEffort {
			e = model.LowEffort // the least that the API has
		}
		if !refused[noLevel] {
			if p.OutputConfig == nil {
				p.OutputConfig = &messagesOutput{}
			}
			p.OutputConfig.Effort = e
		}
	default:
		budget := min(budgets[e], p.MaxTokens*4/5)
		if refused[noBudget] || budget < minBudget || !resumesThought(p.Messages) {
			return
		}
		p.Thinking = &thinking{Type: "enabled", Budget: budget}
	}
	p.Temperature, p.TopP = nil, nil
}

// resumesThought reports whether the model may think within a budget: if it continues after calls,
// the API requires that the message with the calls begins with a thought.
func resumesThought(messages []message) bool {
	for _, m := range slices.Backward(messages) {
		if m.Role == "assistant" {
			return isThought(m.Content[0].kind)
		}
		if !slices.ContainsFunc(m.Content, func(b block) bool { return b.Type == "tool_result" }) {
			return true
		}
	}
	return true
}

// refusedEffort returns the refusal if an error refuses how much the model is to think, or "".
func (x *exchange) refusedEffort(request []byte, refused refusals, says string) string {
	e := x.effort(x.req)
	if e == "" {
		return ""
	}
	names := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return wholeWord(says, word) >= 0 })
	}
	sent, _ := jsonx.Lookup(request, "thinking")
	var now thinking
	_ = decode(sent, &now)
	for _, form := range []struct {
		sent, name string
		words      []string
	}{
		{"adaptive", noDisplay, []string{"display"}},
		{"adaptive", noAdaptive, []string{"adaptive"}},
		{"enabled", noBudget, []string{"enabled", "budget_tokens"}},
		{"adaptive", noLevel, []string{"effort", "output_config"}},
	} {
		if now.Type == form.sent && !refused[form.name] && names(form.words...) {
			return form.name
		}
	}
	for _, name := range []string{"reasoning_effort", "reasoning", "thinking"} {
		if _, there := jsonx.Lookup(request, name); there && names("reasoning_effort", "reasoningEffort", "reasoning", "effort", "thinking") {
			return noEffort(e)
		}
	}
	return ""
}

// extra returns the further members of the request that are not refused, by the names of the
// provider.
func (x *exchange) extra(refused refusals) members {
	out := members{}
	for name, value := range x.req.Extra {
		if own := x.line.Members[name]; own != "" {
			name = own
		}
		if !refused[name] {
			out[name] = value
		}
	}
	return out
}

// settled returns an error if a parameter of the request cannot be sent.
func (x *exchange) settled() error {
	for _, name := range slices.Sorted(maps.Keys(x.req.Extra)) {
		switch {
		case slices.Contains(providers.OwnMembers, name):
			return x.error(model.Rejected, 0, fmt.Sprintf("the parameter %q is part of every request and cannot be set", name), nil)
		case !json.Valid(x.req.Extra[name]):
			return x.error(model.Rejected, 0, fmt.Sprintf("the value of the parameter %q is not JSON", name), nil)
		}
	}
	return nil
}

// lacks records a parameter that is left out, and reports whether that is new.
func (c *client) lacks(parameter string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.leftOut, parameter) {
		return false
	}
	c.leftOut = append(slices.Clip(c.leftOut), parameter)
	return true
}

// noteLeftOut notes the parameters that a request lacks, each once. The argument why has the words of the
// server about those that it has just refused.
func (x *exchange) noteLeftOut(sent []byte, refused refusals, why map[string]string) {
	if x.emit == nil {
		return
	}
	var lacks []string
	missing := func(parameter, name string) {
		if _, there := jsonx.Lookup(sent, name); !there && x.lacks(parameter) {
			lacks = append(lacks, name)
		}
	}
	if x.req.Temperature != nil {
		missing("temperature", "temperature")
	}
	if x.req.TopP != nil {
		missing("topP", "top_p")
	}
	for _, name := range slices.Sorted(maps.Keys(x.req.Extra)) {
		missing(name, cmp.Or(x.line.Members[name], name))
	}
	if e := x.effort(x.req); e != "" && (refused[noEffort(e)] || refused[noLevel] || refused[noAdaptive] && refused[noBudget]) && x.lacks("effort="+string(e)) {
		lacks = append(lacks, noEffort(e))
	}
	for _, name := range lacks {
		note, words := fmt.Sprintf("%s takes no %s here, so it is left out", x.info.Name, name), why[name]
		if strings.HasPrefix(name, noEffort("")) {
			for _, part := range []string{noLevel, noBudget, noAdaptive} {
				if words == "" {
					words = why[part]
				}
			}
		}
		if words != "" {
			note += ": " + text.Clip(words, 300)
		}
		x.emit(model.Delta{Note: note})
	}
}
