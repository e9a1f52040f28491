// Package allow reads the rules that allow calls of a language model without asking: SERVER/TOOL, and a condition
// in CEL with the variables of a policy.
package allow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// ReadOnly is the condition for tools that their server declares read-only.
const ReadOnly = "annotations.readOnlyHint"

// Condition compiles a condition, as host.Host.Condition. The annotations in it are what the server says, trusted
// or not, because a rule with a condition holds only for the tools as they are when the person allows it.
func Condition(when string) (host.Condition, error) {
	c, err := rules.Compile(when)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, a *host.Approval) (bool, error) {
		return c.Holds(&policy.Access{
			Principal: auth.From(ctx), Server: a.Server, Method: "tools/call", Kind: mcp.KindTool, Name: a.Tool.Name,
			Arguments: a.Arguments, Partial: a.Arguments == nil,
			Annotations: func() *policy.Annotations { return annotationsOf(a.Tool.Annotations) },
		})
	}, nil
}

func annotationsOf(a *mcp.ToolAnnotations) *policy.Annotations {
	if a == nil {
		return nil
	}
	said := policy.Unannotated
	said.Title = a.Title
	for to, from := range map[*bool]*bool{&said.ReadOnly: a.ReadOnly, &said.Destructive: a.Destructive, &said.Idempotent: a.Idempotent, &said.OpenWorld: a.OpenWorld} {
		if from != nil {
			*to = *from
		}
	}
	return &said
}

// Parse splits a rule that a person has typed, SERVER/TOOL [if] [CONDITION], into its two parts. Quotes protect
// spaces in the first part, and may surround the second one. The condition "read-only" stands for ReadOnly, and the
// name of a server for all its tools.
func Parse(text string, servers []string) (tools, when string, err error) {
	tools, when = strings.TrimSpace(text), ""
	if quote := tools; quote != "" && strings.ContainsRune(`'"`, rune(quote[0])) {
		end := strings.IndexByte(quote[1:], quote[0])
		if end < 0 {
			return "", "", fmt.Errorf("unclosed quote")
		}
		tools, when = quote[1:1+end], strings.TrimSpace(quote[2+end:])
	} else if at := strings.IndexAny(tools, " \t"); at >= 0 {
		tools, when = tools[:at], strings.TrimSpace(tools[at:])
	}
	when = strings.TrimSpace(strings.TrimPrefix(when, "if "))
	if n := len(when); n > 1 && when[0] == when[n-1] && (when[0] == '\'' || when[0] == '"') {
		if inner := when[1 : n-1]; !strings.ContainsRune(inner, rune(when[0])) {
			when = inner
		}
	}
	if when == "read-only" {
		when = ReadOnly
	}
	if slices.Contains(servers, tools) {
		tools += "/*"
	}
	if !strings.Contains(tools, "/") && tools != "*" {
		return "", "", fmt.Errorf("%s is not SERVER/TOOL, where * matches any text", screen.Cut(screen.OneLine(tools), 60))
	}
	return tools, when, nil
}

// Check refuses rules of --allow without a server or a tool, or with a faulty condition. The servers are those of the
// command line.
func Check(list, servers []string) error {
	for _, rule := range list {
		tools, when, conditional := strings.Cut(rule, " if ")
		if !strings.Contains(tools, "/") && tools != "*" {
			full := tools + "/*"
			if len(servers) == 1 && tools != servers[0] {
				full = servers[0] + "/" + tools
			}
			if conditional {
				full += " if " + when
			}
			return advice.Usagef("--allow %s is not SERVER/TOOL", rule).Hint("--allow " + screen.Shell([]string{full}))
		}
		if !conditional {
			continue
		}
		if _, err := rules.Compile(when); err != nil {
			return advice.Usagef("--allow %s: the condition: %v", rule, err)
		}
	}
	return nil
}

// Unmatched returns a warning for each rule of --allow that matches none of some tools, SERVER/TOOL.
func Unmatched(list, names []string) (warnings []string) {
	for _, rule := range list {
		tools, _, _ := strings.Cut(rule, " if ")
		if !slices.ContainsFunc(names, func(name string) bool { return wildcard.Match(tools, name) }) {
			warnings = append(warnings, fmt.Sprintf("warning: --allow %s matches no tool%s", tools, screen.DidYouMean(tools, names)))
		}
	}
	return warnings
}

// Suggest returns a condition that holds for a call: that the arguments are equal to its own, as far as they are
// short and simple.
func Suggest(arguments json.RawMessage) string {
	var parts []string
	for name, value := range jsonx.Members(arguments) {
		key := string(name)
		path := "arguments." + key
		if !plainName(key) {
			path = "arguments[" + strconv.Quote(key) + "]"
		}
		switch text, err := jsonx.Unquote(value); {
		case err == nil && len(text) <= 200:
			parts = append(parts, path+" == "+strconv.Quote(text))
		case err != nil && strings.ContainsRune("tf-0123456789", rune(value[0])):
			parts = append(parts, path+" == "+string(value))
		}
	}
	if len(parts) == 0 {
		return "arguments == {}"
	}
	return strings.Join(parts, " && ")
}

// plainName reports whether a name can follow a dot in CEL.
func plainName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && !slices.Contains([]string{"in", "true", "false", "null", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"}, s)
}
