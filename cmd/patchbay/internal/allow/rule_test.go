package allow

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

func call(args string, hints *mcp.ToolAnnotations) *host.Approval {
	return &host.Approval{Server: "shop", Tool: &mcp.Tool{Name: "git_run", Annotations: hints}, Arguments: json.RawMessage(args)}
}

// Conditions have the variables of policies. Annotations have the defaults of the specification.
func TestCondition(t *testing.T) {
	yes := true
	for _, tt := range []struct {
		when string
		call *host.Approval
		want bool
	}{
		{`server == "shop" && name == "git_run" && kind == "tool" && method == "tools/call"`, call(`{}`, nil), true},
		{`arguments.command.startsWith("git status")`, call(`{"command":"git status -s"}`, nil), true},
		{`arguments.command.startsWith("git status")`, call(`{"command":"rm"}`, nil), false},
		{ReadOnly, call(`{}`, &mcp.ToolAnnotations{ReadOnly: &yes}), true},
		{ReadOnly, call(`{}`, &mcp.ToolAnnotations{}), false},
		{"annotations.destructiveHint", call(`{}`, nil), true},
		{ReadOnly + ` && arguments.a == 1`, &host.Approval{Tool: &mcp.Tool{Name: "x", Annotations: &mcp.ToolAnnotations{ReadOnly: &yes}}}, true}, // some arguments may fit
		{ReadOnly + ` && arguments.a == 1`, &host.Approval{Tool: &mcp.Tool{Name: "x"}}, false},
	} {
		c, err := Condition(tt.when)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c(t.Context(), tt.call); got != tt.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", tt.when, got, err, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ text, tools, when, fails string }{
		{"shop/buy", "shop/buy", "", ""},
		{"shop/* read-only", "shop/*", ReadOnly, ""},
		{"shop", "shop/*", "", ""},
		{"shop read-only", "shop/*", ReadOnly, ""},
		{"*", "*", "", ""},
		{`shop/git_run arguments.command.startsWith("git status")`, "shop/git_run", `arguments.command.startsWith("git status")`, ""},
		{`shop/git_run 'arguments.command.startsWith("git status")'`, "shop/git_run", `arguments.command.startsWith("git status")`, ""},
		{`shop/git_run if arguments.a == 'x'`, "shop/git_run", `arguments.a == 'x'`, ""},
		{`shop/git_run 'a' == name || name == 'b'`, "shop/git_run", `'a' == name || name == 'b'`, ""},
		{`"my shop/buy now" arguments.a > 1`, "my shop/buy now", "arguments.a > 1", ""},
		{"shp", "", "", "shp is not SERVER/TOOL"},
		{`"shop/buy`, "", "", "unclosed quote"},
		{"", "", "", "is not SERVER/TOOL"},
	} {
		tools, when, err := Parse(tt.text, []string{"shop"})
		if tools != tt.tools || when != tt.when || (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("Parse(%q) = %q, %q, %v, want %q, %q, %q", tt.text, tools, when, err, tt.tools, tt.when, tt.fails)
		}
	}
}

func TestCheck(t *testing.T) {
	for rule, want := range map[string]string{
		"shop/buy": "", "*": "", "shop/buy if arguments.n < 3": "", "* if annotations.readOnlyHint": "",
		"buy":                      "--allow buy is not SERVER/TOOL",
		"buy if true":              "--allow buy if true is not SERVER/TOOL",
		"shop/buy if args.n < 3":   `there is no "args"`,
		"shop/buy if ":             "an empty condition",
		"shop/buy if arguments.n<": "the expression ends too early",
	} {
		err := Check([]string{rule}, []string{"shop"})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%q) = %v, want %q", rule, err, want)
		}
	}
	if got := Unmatched([]string{"shop/b* if true", "shop/buyy if true"}, []string{"shop/buy"}); len(got) != 1 || !strings.Contains(got[0], "--allow shop/buyy matches no tool") {
		t.Errorf("Unmatched = %q", got)
	}
}

// A suggested condition compiles and holds for its call, whatever the arguments are, and does not show hostile text raw.
func TestSuggest(t *testing.T) {
	for args, want := range map[string]string{
		`{"command":"git status","n":-2.5,"all":true,"list":[1],"none":null}`: `arguments.command == "git status" && arguments.n == -2.5 && arguments.all == true`,
		`{}`:                               `arguments == {}`,
		`{"a b":"x","if":1,"1":false}`:     `arguments["a b"] == "x" && arguments["if"] == 1 && arguments["1"] == false`,
		`{"a":"\u202e\u0007 \"&& true\\"}`: `arguments.a == "\u202e\a \"&& true\\"`,
		`{"\u202e\"":"\ud83d\ude00\n"}`:    `arguments["\u202e\""] == "😀\n"`,
		`{"city":"München, 日本\u00a0"}`:     `arguments.city == "München, 日本\u00a0"`,
		`{"big":12345678901234567890123}`:  `arguments.big == 12345678901234567890123`,
	} {
		got := Suggest(json.RawMessage(args))
		if got != want {
			t.Errorf("Suggest(%s) = %s, want %s", args, got, want)
		}
		if strings.Contains(args, "big") {
			continue // CEL has no such number: the person sees that when they press enter
		}
		c, err := Condition(got)
		if err != nil {
			t.Errorf("%s: %v", got, err)
			continue
		}
		if holds, err := c(t.Context(), call(args, nil)); !holds || err != nil {
			t.Errorf("%s does not hold for its own call: %v", got, err)
		}
	}
}
