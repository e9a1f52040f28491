// Package verdict explains the decision of a policy about one access to a person.
//
// [Of] decides; [Verdict.Lines] and [Verdict.Grid] show the verdict, which also has a form in JSON.
// [Principal] and [Annotations] read the parts of an access from words of a command line.
package verdict

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// Verdict is a decision, and the reason for it.
type Verdict struct {
	Allowed bool          `json:"allowed"`
	Listed  bool          `json:"listed"` // lists include the feature
	Rule    string        `json:"rule"`   // the rule that decided; "default" for none
	Scopes  []string      `json:"scopes,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Err     string        `json:"error,omitempty"`
	Tried   []rules.Tried `json:"tried"`
}

// Of returns the verdict of a set of rules about an access.
func Of(ctx context.Context, set *rules.Set, access *policy.Access) *Verdict {
	listed := *access
	listed.Partial, listed.Arguments = true, nil
	shown := set.Decide(ctx, &listed)
	why := set.Explain(ctx, access)
	d := why.Decision
	v := &Verdict{Allowed: d.Allow, Listed: shown.Allow || shown.Show && shown.Scopes != nil, Rule: d.Rule, Scopes: d.Scopes, Reason: d.Reason, Tried: why.Tried}
	if d.Err != nil {
		v.Err = d.Err.Error()
	}
	return v
}

// Lines returns the verdict in words; the first line follows "allowed" or "refused". The argument
// file is the file of rules.
func (v *Verdict) Lines(access *policy.Access, file string) []string {
	feature := access.Name + access.Template
	switch {
	case access.Kind == "":
		feature = "method " + feature
	case access.Template != "":
		feature = "template " + feature
	default:
		feature = string(access.Kind) + " " + feature
	}
	if access.Server != "" {
		feature += " of " + access.Server
	}
	caller := "an anonymous caller"
	if access.Principal != nil {
		caller = access.Principal.ID
	}
	lines := []string{fmt.Sprintf("%s: %s for %s", v.By(file), feature, caller)}
	if why := v.Why(); why != "" {
		lines = append(lines, why)
	}
	switch {
	case access.Kind == "":
	case v.Listed:
		lines = append(lines, "shown in lists")
	default:
		lines = append(lines, "hidden from lists")
	}
	return lines
}

// Line returns the line of the rule that decided; 0: none did.
func (v *Verdict) Line() int {
	for _, t := range v.Tried {
		if t.Rule == v.Rule {
			return t.Line
		}
	}
	return 0
}

// By returns what decided, in words: a rule with its place in a file, or that no rule did.
func (v *Verdict) By(file string) string {
	if line := v.Line(); line > 0 {
		return fmt.Sprintf("by rule %q (%s:%d)", v.Rule, filepath.Base(file), line)
	}
	return "by default, as no rule matches"
}

// Why returns what else there is to say about the reason of a decision; empty: nothing.
func (v *Verdict) Why() string {
	switch {
	case v.Err != "":
		return "refused, as the rule fails: " + v.Err
	case len(v.Scopes) > 0:
		return "scopes that would allow it, sent to the caller: " + strings.Join(v.Scopes, " ")
	case v.Reason != "":
		return "reason: " + v.Reason
	}
	return ""
}

// Grid returns a table of the rules that were tried; nil: none was.
func (v *Verdict) Grid() *screen.Grid {
	if len(v.Tried) == 0 {
		return nil
	}
	g := &screen.Grid{}
	g.Add("RULE", "LINE", "EFFECT", "MATCHES", "REASON")
	for _, t := range v.Tried {
		var because []string
		for _, value := range t.Values {
			because = append(because, value.Of+" = "+value.Value)
		}
		if t.Err != "" {
			because = append(because, t.Err)
		}
		g.Add(t.Rule, fmt.Sprint(t.Line), t.Effect, t.Outcome, strings.Join(because, ", "))
	}
	return g
}

// Principal returns the caller with an ID such as "apikey#ada" or "https://a.example#ada". Each of
// claims is NAME=VALUE; VALUE is JSON, or text.
func Principal(id string, scopes, roles, claims []string) (*auth.Principal, error) {
	p := &auth.Principal{ID: id, Scopes: scopes, Roles: roles, Claims: map[string]any{}}
	if before, subject, ok := strings.Cut(id, "#"); ok {
		p.Subject = subject
		if strings.Contains(before, "://") {
			p.Issuer = before
		} else {
			p.Scheme = before
		}
	}
	for _, text := range claims {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--claim %q is not NAME=VALUE", text)
		}
		var v any
		if err := jsonx.Unmarshal(arguments.Guess(value), &v); err != nil {
			return nil, fmt.Errorf("--claim %s: %v", name, err)
		}
		p.Claims[name] = v
	}
	return p, nil
}

// Annotations returns the annotations of a feature: those of the words, each NAME=VALUE, and
// [policy.Unannotated] for the rest.
func Annotations(words []string) (*policy.Annotations, error) {
	n := policy.Unannotated
	flags := map[string]*bool{"readOnlyHint": &n.ReadOnly, "destructiveHint": &n.Destructive, "idempotentHint": &n.Idempotent, "openWorldHint": &n.OpenWorld}
	for _, text := range words {
		name, value, given := strings.Cut(text, "=")
		to := flags[name]
		switch {
		case name == "title":
			n.Title = value
		case name == "audience":
			n.Audience = append(n.Audience, value)
		case name == "priority" && json.Unmarshal([]byte(value), &n.Priority) == nil:
		case to != nil && (!given || value == "true"):
			*to = true
		case to != nil && value == "false":
			*to = false
		default:
			return nil, fmt.Errorf("--annotation %q is not readOnlyHint, destructiveHint, idempotentHint or openWorldHint (=true or =false), title=, audience= or priority=", text)
		}
	}
	return &n, nil
}
