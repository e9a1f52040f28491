package rules_test

import (
	"context"
	"fmt"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

func ExampleParse() {
	set, err := rules.Parse("policy.yaml", []byte(`
rules:
  - name: refunds up to 100
    when: kind == "tool" && name == "refund" && arguments.amount <= 100
    effect: allow
  - name: managers
    when: '"manager" in principal.roles'
    effect: allow
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, args := range []string{`{"amount": 20}`, `{"amount": 2000}`} {
		d := set.Decide(context.Background(), &policy.Access{
			Principal: &auth.Principal{ID: "apikey#ada"}, Kind: mcp.KindTool, Name: "refund", Arguments: []byte(args),
		})
		fmt.Println(d.Allow, d.Rule)
	}
	// Output:
	// true refunds up to 100
	// false default
}

// All faults of a file are reported at once.
func ExampleProblems() {
	_, err := rules.Parse("policy.yaml", []byte("rules:\n  - {name: a, effect: allow, when: kind == 'tols'}\n  - {name: b, when: nmae == 'x'}\n"))
	fmt.Println(err)
	// Output:
	// policy.yaml:2:44: rule "a": kind is never "tols"; did you mean "tool"?
	// policy.yaml:3:5: rule "b" has no effect; add effect: allow or effect: deny
	// policy.yaml:3:21: rule "b": there is no "nmae"; did you mean "name"?
}
