package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/verdict"
	"github.com/patchbay-dev/patchbay/inspector"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// maxJudged bounds the calls of an answer of [Judge].
const maxJudged = 1000

// Judge says what other rules would do with the calls of tools in a recording: the Judge of an inspector.Page. Of many calls
// the answer has those that the rules decide otherwise than the recording shows first.
func Judge(ctx context.Context, file []byte, by *inspector.Access, recording io.Reader) (*inspector.Answer, error) {
	set, err := rules.Parse("the policy", file)
	if err != nil {
		return nil, err
	}
	p := &verdict.Replay{Set: set, Server: by.Server, Owners: Owners}
	if by.Principal == "" && len(by.Roles)+len(by.Scopes) > 0 {
		return nil, errors.New("roles and scopes need a principal")
	}
	if by.Principal != "" {
		if p.Principal, err = verdict.Principal(by.Principal, by.Scopes, by.Roles, nil); err != nil {
			return nil, err
		}
	}
	r, err := p.Run(ctx, recording)
	if err != nil {
		return nil, err
	}
	out := &inspector.Answer{Summary: r.Summary(), Columns: []string{"#Line", "Call", "Then", "Now", "Rule"}, Rows: [][]string{}}
	if r.Redacted > 0 {
		out.Notes = append(out.Notes, "The arguments of "+screen.Quantity(r.Redacted, "call")+" were recorded without secrets, so the decision may be another.")
	}
	out.Notes = append(out.Notes, r.Faults...)
	if over := len(r.Calls) - maxJudged; over > 0 {
		out.Notes = append(out.Notes, "Not shown: "+screen.Quantity(over, "call")+". Those that differ come first.")
		slices.SortStableFunc(r.Calls, func(a, b verdict.Recorded) int {
			switch {
			case a.Differs && !b.Differs:
				return -1
			case b.Differs && !a.Differs:
				return 1
			}
			return 0
		})
		r.Calls = r.Calls[:maxJudged]
	}
	for _, c := range r.Calls {
		then, now, rule := "sent", "refused", c.Rule
		switch {
		case !c.Reached:
			then = "not sent"
		case c.Error != "":
			then = "error"
		}
		if c.Allowed {
			now = "allowed"
		}
		if c.Differs {
			now = "! " + now
		}
		if c.Rules > 0 {
			rule = fmt.Sprintf("%s (line %d)", c.Rule, c.Rules)
		}
		if c.Why != "" {
			rule += ": " + c.Why
		}
		out.Rows = append(out.Rows, []string{fmt.Sprint(c.Line), strings.TrimPrefix(c.Server+"/"+c.Tool, "/"), then, now, rule})
	}
	return out, nil
}
