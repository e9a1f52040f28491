package allow

import (
	"slices"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/approval"
)

// Change is a tool that has changed since it was allowed.
type Change struct {
	Server  string   `json:"server"`
	Tool    string   `json:"tool"`
	Changed string   `json:"changed"`        // "description, inputSchema"
	Diff    []string `json:"diff,omitempty"` // as Line.String has it; empty: the earlier definition is not known

	Lines []Line `json:"-"`
}

// Changes returns the approvals whose tools are now defined differently, in their order.
func Changes(list []approval.Approval, now []host.Tool) []Change {
	out := []Change{}
	for _, a := range list {
		at := slices.IndexFunc(now, func(t host.Tool) bool { return t.Server == a.Server && t.Tool.Name == a.Tool })
		if at < 0 {
			continue
		}
		changed, before := a.Differs(now[at].Tool)
		if changed == "" || slices.ContainsFunc(out, func(c Change) bool { return c.Server == a.Server && c.Tool == a.Tool }) {
			continue
		}
		c := Change{Server: a.Server, Tool: a.Tool, Changed: changed}
		if before != nil {
			c.Lines = Diff(before, now[at].Tool)
		}
		for _, l := range c.Lines {
			c.Diff = append(c.Diff, l.String())
		}
		out = append(out, c)
	}
	return out
}

// Candidates completes the words of "config approvals": what to do, then the servers with approvals, or the approved
// tools of one.
func Candidates(words []string) []complete.Candidate {
	if len(words) == 0 {
		return []complete.Candidate{{Text: "changes", About: "Show what has changed."}, {Text: "revoke", About: "Delete approvals."}}
	}
	f, err := approval.Open("")
	if err != nil {
		return nil
	}
	list, err := f.List()
	if err != nil {
		return nil
	}
	var out []complete.Candidate
	for _, p := range list {
		s := complete.Candidate{Text: p.Server}
		if len(words) > 1 {
			if p.Server != words[1] {
				continue
			}
			s.Text = p.Tool
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
