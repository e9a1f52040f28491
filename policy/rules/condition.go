package rules

import (
	"errors"
	"strings"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/internal/yamlfile"
	"github.com/patchbay-dev/patchbay/policy"
)

// Condition is a condition on its own, outside of a file. It is immutable and safe for concurrent
// use.
type Condition struct{ exact, partial cel.Program }

// Compile compiles a condition with the variables and the bounds of those of a file. The error says
// how to correct it, in one line.
func Compile(when string) (*Condition, error) {
	r := &reader{Reader: yamlfile.Reader{Lines: [][]byte{[]byte(when)}}, alone: true}
	one := &rule{}
	r.compile(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: when, Line: 1, Column: 1}, one)
	var texts []string
	for _, p := range r.Faults() {
		if p.Fix != "" {
			p.Text += "; " + p.Fix
		}
		texts = append(texts, p.Text)
	}
	if len(texts) > 0 {
		return nil, errors.New(strings.Join(texts, "; "))
	}
	return &Condition{one.exact, one.partial}, nil
}

// Holds reports whether the condition holds for an access; for a partial one, whether it holds for
// some values of what is not known. With an error, because it cannot be evaluated or costs too
// much, it does not hold.
func (c *Condition) Holds(a *policy.Access) (bool, error) {
	vars, err := activation(a)
	if err != nil {
		return false, err
	}
	program := c.exact
	if a.Partial {
		program = c.partial
	}
	out, _, err := program.Eval(vars)
	what, err := outcomeOf(out, err)
	return what == yes || what == perhaps, err
}
