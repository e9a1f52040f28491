package rules

import (
	"context"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/policy"
)

// Explanation holds the steps of a decision.
type Explanation struct {
	Decision policy.Decision
	Tried    []Tried // in order, up to the rule that decided, and those after it that match too
}

// Tried is a rule that was evaluated.
type Tried struct {
	Rule    string  `json:"rule"`
	Line    int     `json:"line"`
	When    string  `json:"when"`
	Effect  string  `json:"effect"`          // "allow" or "deny"
	Outcome string  `json:"outcome"`         // "yes", "no", "perhaps" (it depends on what is not known), "failed" or "shadowed" (it matches, and an earlier rule decided)
	Err     string  `json:"error,omitempty"` // why it failed
	Values  []Value `json:"values"`          // values that the outcome depends on
}

// Value is the value of a part of a condition.
type Value struct {
	Of    string `json:"of"`    // "principal.scopes"
	Value string `json:"value"` // as CEL writes it, at most 200 bytes
}

// Explain is Decide with its reasons. It is slower and meant for people. The values may be
// secret.
func (s *Set) Explain(_ context.Context, a *policy.Access) Explanation {
	out := Explanation{Tried: []Tried{}}
	vars, err := activation(a)
	if err != nil {
		out.Decision = policy.Decision{Rule: byDefault, Err: err}
		return out
	}
	try := func(r *rule) (Tried, outcome, error) {
		t := Tried{Rule: r.name, Line: r.line, When: r.when, Effect: effectOf(r.allow), Values: []Value{}}
		what, err := r.trace(vars, &t)
		t.Outcome = [...]string{no: "no", yes: "yes", perhaps: "perhaps", failed: "failed"}[what]
		if err != nil {
			t.Err = err.Error()
		}
		return t, what, err
	}
	out.Decision = s.decide(func(r *rule) (outcome, error) {
		t, what, err := try(r)
		out.Tried = append(out.Tried, t)
		return what, err
	})
	for _, r := range s.rules[len(out.Tried):] {
		if t, what, _ := try(r); what == yes {
			t.Outcome = "shadowed"
			out.Tried = append(out.Tried, t)
		}
	}
	return out
}

func effectOf(allow bool) string {
	if allow {
		return "allow"
	}
	return "deny"
}

// trace evaluates a rule and notes the values that it used.
func (r *rule) trace(vars cel.Activation, t *Tried) (outcome, error) {
	env, err := environment()
	if err != nil {
		return failed, err
	}
	program, err := env.Program(r.checked, cel.EvalOptions(cel.OptTrackState, cel.OptPartialEval), cel.CostLimit(maxCost))
	if err != nil {
		return failed, err
	}
	out, details, err := program.Eval(vars)
	if details != nil {
		used(r.checked.NativeRep().Expr(), details.State(), t)
	}
	return outcomeOf(out, err)
}

// used records the evaluated values of the variables in an expression, and of their members.
func used(e ast.Expr, state interpreter.EvalState, t *Tried) {
	if path := pathOf(e); path != "" {
		if v, ok := state.Value(e.ID()); ok && !types.IsError(v) {
			if n := (Value{path, shown(v)}); !slices.Contains(t.Values, n) {
				t.Values = append(t.Values, n)
			}
		}
		return
	}
	switch e.Kind() {
	case ast.CallKind:
		if e.AsCall().IsMemberFunction() {
			used(e.AsCall().Target(), state, t)
		}
		for _, arg := range e.AsCall().Args() {
			used(arg, state, t)
		}
	case ast.ListKind:
		for _, el := range e.AsList().Elements() {
			used(el, state, t)
		}
	case ast.SelectKind:
		used(e.AsSelect().Operand(), state, t)
	case ast.ComprehensionKind:
		used(e.AsComprehension().IterRange(), state, t)
	}
}

// pathOf returns the text of an expression that is a variable or a member of one, or "" if it is
// neither.
func pathOf(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		if slices.Contains(variables, e.AsIdent()) {
			return e.AsIdent()
		}
	case ast.SelectKind:
		sel := e.AsSelect()
		operand := pathOf(sel.Operand())
		switch {
		case operand == "":
		case sel.IsTestOnly():
			return "has(" + operand + "." + sel.FieldName() + ")"
		default:
			return operand + "." + sel.FieldName()
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || call.Args()[1].Kind() != ast.LiteralKind {
			return ""
		}
		if operand := pathOf(call.Args()[0]); operand != "" {
			return operand + "[" + types.Format(call.Args()[1].AsLiteral()) + "]"
		}
	}
	return ""
}

// shown returns a value for people.
func shown(v ref.Val) string {
	if types.IsUnknown(v) {
		return "not known"
	}
	const most = 200
	return text.Clip(strings.ToValidUTF8(types.Format(v), "�"), most)
}
