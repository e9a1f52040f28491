package rules

import (
	"context"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/policy"
)

// Set holds the rules of a file. It is a [policy.Policy].
type Set struct {
	path  string
	allow bool // the decision if no rule matches
	rules []*rule

	digest string // of the file
}

// rule is one rule.
type rule struct {
	name, when string
	line       int
	allow      bool
	scopes     []string
	show       bool
	reason     string

	checked *cel.Ast
	exact   cel.Program
	partial cel.Program // for partial accesses
}

// byDefault is the name in a decision when no rule matches.
const byDefault = "default"

// Len returns the number of rules.
func (s *Set) Len() int { return len(s.rules) }

// Digest returns the SHA-256 of the file, as "sha256:" and hex, for logs.
func (s *Set) Digest() string { return s.digest }

// outcome is the result of the condition of a rule.
type outcome int

const (
	no outcome = iota
	yes
	perhaps // it depends on unknown values
	failed
)

// Version returns s, which does not change.
func (s *Set) Version() any { return s }

// Decide returns the decision of the first rule that matches.
func (s *Set) Decide(_ context.Context, a *policy.Access) policy.Decision {
	vars, err := activation(a)
	if err != nil {
		return policy.Decision{Rule: byDefault, Err: err}
	}
	return s.decide(func(r *rule) (outcome, error) {
		program := r.exact
		if a.Partial {
			program = r.partial
		}
		out, _, err := program.Eval(vars)
		return outcomeOf(out, err)
	})
}

// Page reports whether a rule, and not the default, lets a caller open the page of the program. The kind of that access is
// "page".
func (s *Set) Page(ctx context.Context, p *auth.Principal) bool {
	d := s.Decide(ctx, &policy.Access{Principal: p, Method: kindPage, Kind: kindPage, Name: kindPage})
	return d.Allow && d.Rule != byDefault
}

// decide evaluates the rules in order until one decides.
func (s *Set) decide(eval func(*rule) (outcome, error)) policy.Decision {
	maybe := "" // the first rule that would allow it for some unknown values
	for _, r := range s.rules {
		what, err := eval(r)
		switch what {
		case no:
			continue
		case perhaps:
			if r.allow && maybe == "" {
				maybe = r.name
			}
			continue
		}
		if maybe != "" {
			break
		}
		if what == failed {
			return policy.Decision{Rule: r.name, Err: fmt.Errorf("%s:%d: %w", s.path, r.line, err)}
		}
		return r.decision()
	}
	if maybe != "" {
		return policy.Decision{Allow: true, Rule: maybe}
	}
	return policy.Decision{Allow: s.allow, Rule: byDefault}
}

// decision returns the decision of a rule.
func (r *rule) decision() policy.Decision {
	return policy.Decision{Allow: r.allow, Rule: r.name, Scopes: r.scopes, Show: r.show, Reason: r.reason}
}

func outcomeOf(out ref.Val, err error) (outcome, error) {
	switch {
	case err != nil:
		return failed, err
	case types.IsUnknown(out):
		return perhaps, nil
	}
	if b, ok := out.(types.Bool); ok {
		if b {
			return yes, nil
		}
		return no, nil
	}
	return failed, fmt.Errorf("the condition is a %s, not true or false", out.Type().TypeName())
}

// The unknown variables of a partial access.
var (
	noArguments = []*cel.AttributePatternType{cel.AttributePattern("arguments")}
	noURI       = append(noArguments[:1:1], cel.AttributePattern("name"))
	noFeature   = append(noURI[:2:2], cel.AttributePattern("annotations"))
)

// activation gives expressions the variables of an access.
func activation(a *policy.Access) (cel.Activation, error) {
	if n := len(a.Arguments) + len(a.Name); n > maxInput {
		return nil, fmt.Errorf("name and arguments have %d bytes, over the limit of %d", n, maxInput)
	}
	vars := &values{a: a}
	if !a.Partial {
		return vars, nil
	}
	unknown := noArguments
	switch {
	case a.Name == "" && a.Template == "":
		unknown = noFeature
	case a.Name == "":
		unknown = noURI
	}
	return cel.PartialVars(vars, unknown...)
}
