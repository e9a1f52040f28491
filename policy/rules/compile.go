package rules

import (
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/internal/pattern"
	"github.com/patchbay-dev/patchbay/internal/yamlfile"
)

// maxCost bounds one evaluation of a condition, in the units of CEL: about one for each
// operation, and one for each ten bytes that a text is searched.
const maxCost = 1_000_000

// compile makes the programs of a rule's condition.
func (r *reader) compile(n *yaml.Node, one *rule) {
	if one.when = strings.TrimSpace(r.Text(n, "when")); one.when == "" {
		if n.Kind == yaml.ScalarNode {
			r.Fault(n, "when: true is always", "%s", r.about(one, " has ")+"an empty condition")
		}
		return
	}
	env, err := environment()
	if err != nil {
		r.Fault(n, "", "%v", err)
		return
	}
	checked, issues := env.Compile(n.Value)
	if issues.Err() != nil {
		for _, e := range issues.Errors() {
			line, column := r.place(n, e.Location.Line(), e.Location.Column())
			text, fix := reword(e.Message)
			r.FaultAt(line, column, fix, "%s%s", r.about(one, ": "), text)
		}
		return
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		r.Fault(n, `compare it with something, as in kind == "tool"`, "%sthe condition is a %s and must be true or false", r.about(one, ": "), t)
		return
	}
	r.lint(n, one, checked)
	one.checked = checked
	one.exact, one.partial, err = programs(env, checked)
	if err != nil {
		r.Fault(n, "", "%s%v", r.about(one, ": "), err)
	}
}

// about returns the beginning of a fault in the condition of a rule.
func (r *reader) about(one *rule, then string) string {
	if r.alone {
		return ""
	}
	return "rule " + yamlfile.Quote(one.name) + then
}

// programs makes the programs of a condition, for exact and for partial accesses. Counting the
// cost takes longer than most conditions, so it is counted only if some arguments could exceed
// the bound.
func programs(env *cel.Env, checked *cel.Ast) (exact, partial cel.Program, err error) {
	var bound []cel.ProgramOption
	if most, err := env.EstimateCost(checked, sizes{}); err != nil || most.Max > maxCost {
		bound = append(bound, cel.CostLimit(maxCost))
	}
	if exact, err = env.Program(checked, append(bound, cel.EvalOptions(cel.OptOptimize))...); err != nil {
		return nil, nil, err
	}
	partial, err = env.Program(checked, append(bound, cel.EvalOptions(cel.OptOptimize, cel.OptPartialEval))...)
	return exact, partial, err
}

// maxInput bounds the name and the arguments of an access, in bytes.
const maxInput = 16 << 20

// maxCredential bounds the claims of a credential, in bytes: it is in a header, or in an answer
// from an authorization server that is read up to that length.
const maxCredential = 256 << 10

// sizes estimates the maximum sizes of the values of an access.
type sizes struct{}

// EstimateSize bounds the length of a value.
func (sizes) EstimateSize(e cost.AstNode) *cost.SizeEstimate {
	most := uint64(maxInput)
	if path := e.Path(); len(path) > 0 && path[0] == "principal" {
		most = maxCredential
	}
	s := cost.RangedSizeEstimate(0, most)
	return &s
}

// EstimateCallCost returns nil: functions have their default costs.
func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

var (
	undeclared = pattern.Lazy(`^undeclared reference to '([^']*)'`)
	noField    = pattern.Lazy(`^undefined field '([^']*)'`)
	noOverload = pattern.Lazy(`^found no matching overload for '([^']*)' applied to '\(?(.*?)\)?'$`)
	expecting  = pattern.Lazy(`^Syntax error: (.*?)(?: expecting .*)?$`)
	operator   = pattern.Lazy(`^_(.+)_$|^@(in)$|^(!)_$`)
)

// reword rewrites an error of CEL in the style of this program.
func reword(message string) (text, fix string) {
	if strings.Contains(message, "token recognition error at: '=") {
		return "= is not an operator", "write == to compare"
	}
	if m := undeclared().FindStringSubmatch(message); m != nil {
		return "there is no " + yamlfile.Quote(m[1]), yamlfile.Nearest(m[1], variables)
	}
	if m := noField().FindStringSubmatch(message); m != nil {
		return "there is no field " + yamlfile.Quote(m[1]), yamlfile.Nearest(m[1], fields())
	}
	if m := noOverload().FindStringSubmatch(message); m != nil {
		name := m[1]
		if op := operator().FindStringSubmatch(name); op != nil {
			name = op[1] + op[2] + op[3]
		}
		return yamlfile.Quote(name) + " does not apply to " + m[2], ""
	}
	if m := expecting().FindStringSubmatch(message); m != nil {
		if strings.Contains(m[1], "'<EOF>'") {
			return "the expression ends too early", ""
		}
		return m[1], ""
	}
	if message == "invalid matches argument" {
		return "this is not a regular expression", "see github.com/google/re2/wiki/Syntax"
	}
	return message, ""
}

// lint finds comparisons that are never true because of a misspelling.
func (r *reader) lint(n *yaml.Node, one *rule, checked *cel.Ast) {
	a := checked.NativeRep()
	source := a.SourceInfo()
	check := func(literal ast.Expr) {
		if literal.Kind() != ast.LiteralKind {
			return
		}
		text, ok := literal.AsLiteral().Value().(string)
		if !ok || slices.Contains(kinds, text) {
			return
		}
		at := source.GetStartLocation(literal.ID())
		line, column := r.place(n, at.Line(), at.Column())
		r.FaultAt(line, column, yamlfile.Nearest(text, kinds), "%skind is never %s", r.about(one, ": "), yamlfile.Quote(text))
	}
	ast.PostOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		call := e.AsCall()
		left, right := call.Args()[0], call.Args()[1]
		switch call.FunctionName() {
		case operators.Equals, operators.NotEquals:
			if isKind(right) {
				left, right = right, left
			}
			if isKind(left) {
				check(right)
			}
		case operators.In:
			if isKind(left) && right.Kind() == ast.ListKind {
				for _, e := range right.AsList().Elements() {
					check(e)
				}
			}
		}
	}))
}

func isKind(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "kind" }
