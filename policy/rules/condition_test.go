package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

func TestCondition(t *testing.T) {
	readOnly := func() *policy.Annotations { return &policy.Annotations{ReadOnly: true} }
	expensive := "arguments.list.all(a, arguments.list.all(b, arguments.list.all(c, a + b + c > 0)))"
	tests := []struct {
		when, arguments string
		holds           bool
		fails           bool
	}{
		{`arguments.command.startsWith("git status")`, `{"command":"git status -s"}`, true, false},
		{`arguments.command.startsWith("git status")`, `{"command":"git push"}`, false, false},
		{`arguments.command.startsWith("git status")`, `{}`, false, true},
		{`arguments.command.startsWith("git status")`, `{"command":7}`, false, true},
		{`arguments.n`, `{"n":"yes"}`, false, true},
		{`annotations.readOnlyHint && name == "git_run" && server == "shop"`, `{}`, true, false},
		{`arguments.amount <= 100`, `{"amount":2000,"\\u0061mount":1}`, false, false}, // the second name is not "amount"
		{`arguments["a\"b"] == 1 && arguments["\\n"] == 2`, `{"a\"b":1,"\\n":2}`, true, false},
		{expensive, `{"list":[` + strings.Repeat("1,", 300) + `1]}`, false, true},
	}
	for _, tt := range tests {
		c, err := rules.Compile(tt.when)
		if err != nil {
			t.Fatalf("%s: %v", tt.when, err)
		}
		a := &policy.Access{Server: "shop", Kind: mcp.KindTool, Method: "tools/call", Name: "git_run", Arguments: []byte(tt.arguments), Annotations: readOnly}
		holds, err := c.Holds(a)
		if holds != tt.holds || (err != nil) != tt.fails {
			t.Errorf("%s with %.50s: %v, %v, want %v, an error: %v", tt.when, tt.arguments, holds, err, tt.holds, tt.fails)
		}
	}
}

// Without arguments a condition holds if it may hold for some.
func TestConditionWithoutArguments(t *testing.T) {
	for when, want := range map[string]bool{
		`annotations.readOnlyHint`:                            false,
		`!annotations.readOnlyHint`:                           true,
		`!annotations.readOnlyHint && arguments.amount <= 10`: true,
		`annotations.readOnlyHint && arguments.amount <= 10`:  false,
	} {
		c, err := rules.Compile(when)
		if err != nil {
			t.Fatal(err)
		}
		if holds, err := c.Holds(&policy.Access{Kind: mcp.KindTool, Name: "x", Partial: true}); holds != want || err != nil {
			t.Errorf("%s: %v, %v, want %v", when, holds, err, want)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for when, want := range map[string]string{
		"":                           "an empty condition; when: true is always",
		`args.command == "x"`:        `there is no "args"`,
		`argument.command == "x"`:    `there is no "argument"; did you mean "arguments"?`,
		`arguments.command = "x"`:    "= is not an operator; write == to compare",
		`name`:                       `the condition is a string and must be true or false; compare it with something, as in kind == "tool"`,
		`name.matches("[")`:          "this is not a regular expression; see github.com/google/re2/wiki/Syntax",
		strings.Repeat("!", 9000):    "expression code point size exceeds limit",
		"name ==\n 5":                `"==" does not apply to string, int`,
		`arguments.a.startsWith("x"`: "the expression ends too early",
	} {
		if c, err := rules.Compile(when); c != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Compile(%.40q) = %v, %v, want %q", when, c, err, want)
		}
	}
}

func ExampleCompile() {
	c, err := rules.Compile(`arguments.amount <= 100`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, args := range []string{`{"amount": 20}`, `{"amount": 2000}`, `{}`} {
		fmt.Println(c.Holds(&policy.Access{Kind: mcp.KindTool, Name: "refund", Arguments: []byte(args)}))
	}
	// Output:
	// true <nil>
	// false <nil>
	// false no such key: amount
}
