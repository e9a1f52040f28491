package eval

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
)

// Made is a call that the model made.
type Made struct {
	Server    string          `json:"server,omitempty"` // empty: a tool of the host, or an unknown tool
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Outcome   host.Outcome    `json:"outcome,omitempty"`
}

func (m *Made) name() string {
	if m.Server == "" {
		return m.Tool
	}
	return m.Server + "/" + m.Tool
}

// called reports whether the call was neither denied nor invalid.
func (m *Made) called() bool { return m.Outcome != host.Denied && m.Outcome != host.Invalid }

// faults returns what differs from the expectations, except for those that a judge decides.
func (e *Expect) faults(r *Reply, m model.Info) (list []string) {
	fault := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	list = append(list, e.callFaults(r.Calls)...)
	for _, pattern := range e.Never {
		for i := range r.Calls {
			if wildcard.Match(pattern, r.Calls[i].name()) {
				fault("%s was called, but must not be (%s)", r.Calls[i].name(), r.Calls[i].Outcome)
				break
			}
		}
	}
	list = append(list, e.Answer.faults(r.Answer)...)
	if e.Steps > 0 && r.Steps > e.Steps {
		fault("it took %d steps; the limit is %d", r.Steps, e.Steps)
	}
	switch {
	case e.Cost > 0 && m.Price == (model.Price{}):
		fault("the price of %s is not known, so it cannot be compared with %g", m.Name, e.Cost)
	case e.Cost > 0 && r.Cost > e.Cost:
		fault("it cost %.4g; the limit is %g", r.Cost, e.Cost)
	}
	return list
}

// callFaults returns which expected calls were made too few times, too many times or too early.
func (e *Expect) callFaults(made []Made) (list []string) {
	fault := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	like, near := make([][]int, len(e.Calls)), make([]string, len(e.Calls))
	for i := range e.Calls {
		like[i], near[i] = e.Calls[i].among(made)
	}
	has, over := e.share(like, len(made))
	next := 0 // least index of the next call in an ordered list
	for i := range e.Calls {
		want := &e.Calls[i]
		switch need := want.least(); {
		case len(like[i]) == 0 && near[i] != "":
			fault("%s was not called as expected: %s", want.Tool, near[i])
		case len(like[i]) == 0:
			fault("%s was not called; %s", want.Tool, instead(made))
		case len(like[i]) < need:
			fault("%s was called %s, not %s", want.Tool, times(len(like[i])), times(need))
		case has[i] < need:
			fault("%s was called %s, not %s besides the other expected calls", want.Tool, times(len(like[i])), times(need))
		case over[i] > 0:
			fault("%s was called %s, not %s", want.Tool, times(has[i]+over[i]), times(want.Max))
		case e.Ordered:
			at := slices.IndexFunc(like[i], func(i int) bool { return i >= next })
			if at < 0 {
				fault("%s was called too early", want.Tool)
			} else {
				next = like[i][at] + 1
			}
		}
	}
	return list
}

// instead describes the calls that were made, for an expected one that was not.
func instead(made []Made) string {
	var names []string
	for i := range made {
		name := made[i].name()
		if !made[i].called() {
			name += fmt.Sprintf(" (%s)", made[i].Outcome)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch most := 8; {
	case len(names) == 0:
		return "no tool was"
	case len(names) > most:
		names = append(names[:most], "…")
	}
	return "called: " + strings.Join(names, ", ")
}

// share assigns each call that was made to one of the expected calls that it matches. It first
// minimizes the calls that are missing, and then those that are too many. For each expected call it
// returns how many calls it has, and how many matched without room.
func (e *Expect) share(like [][]int, made int) (has, over []int) {
	has, over = make([]int, len(like)), make([]int, len(like))
	room := make([]int, len(like))
	owner := slices.Repeat([]int{-1}, made)
	var place func(call int, tried []bool) bool
	place = func(call int, tried []bool) bool {
		for i := range like {
			if tried[i] || !slices.Contains(like[i], call) {
				continue
			}
			tried[i] = true
			if has[i] < room[i] {
				has[i]++
				owner[call] = i
				return true
			}
			for other := range owner {
				if owner[other] == i && place(other, tried) { // another expected call takes it
					owner[call] = i
					return true
				}
			}
		}
		return false
	}
	for i := range e.Calls {
		room[i] = e.Calls[i].least()
	}
	for call := range owner {
		place(call, make([]bool, len(like)))
	}
	for i := range e.Calls {
		if room[i] = e.Calls[i].Max; room[i] <= 0 {
			room[i] = made
		}
	}
	for call := range owner {
		if owner[call] >= 0 || place(call, make([]bool, len(like))) {
			continue
		}
		for i := range like {
			if slices.Contains(like[i], call) {
				over[i]++
			}
		}
	}
	return has, over
}

// least returns the minimum number of times that a call is made.
func (c *Call) least() int { return max(c.Min, 1) }

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// among returns the indices of the calls that match, and the fault of one that nearly matches.
func (c *Call) among(calls []Made) (found []int, near string) {
	for i := range calls {
		m := &calls[i]
		if !m.called() || !wildcard.Match(c.Tool, m.name()) {
			continue
		}
		wrong := ""
		for j := range c.Arguments {
			a := &c.Arguments[j]
			v, there := at(m.Arguments, a.Path)
			if text := a.fault(v, there); text != "" {
				wrong = a.Path + " " + text
				break
			}
		}
		if wrong == "" {
			found = append(found, i)
		} else {
			near = wrong
		}
	}
	return found, near
}

// faults returns what is wrong with an answer, except for what a judge decides.
func (a *Answer) faults(said string) (list []string) {
	fault := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if a.Equals != "" && strings.TrimSpace(said) != strings.TrimSpace(a.Equals) {
		fault("the answer is %q, not %q", text.Short(said), a.Equals)
	}
	for _, part := range a.Contains {
		if !strings.Contains(said, part) {
			fault("the answer does not contain %q", part)
		}
	}
	for _, part := range a.Lacks {
		if strings.Contains(said, part) {
			fault("the answer contains %q", part)
		}
	}
	for _, expr := range a.Regexp {
		if re, err := regexp.Compile(expr); err != nil {
			fault("%v", err)
		} else if !re.MatchString(said) {
			fault("the answer does not match %s", expr)
		}
	}
	if a.Schema != nil {
		raw := json.RawMessage(unfenced(said))
		if err := jsonx.Valid(raw, 0); err != nil {
			fault("the answer is not JSON: %v", err)
		} else if err := fits(a.Schema, raw); err != nil {
			fault("the answer does not fit its schema: %v", err)
		}
	}
	return list
}

// unfenced returns the text inside a Markdown fence, or text itself.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok && strings.HasSuffix(inner, "```") {
		if _, inner, ok = strings.Cut(strings.TrimSuffix(inner, "```"), "\n"); ok {
			return strings.TrimSpace(inner)
		}
	}
	return text
}
