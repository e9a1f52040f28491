package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Hook is a command that runs before or after calls of a language model, its variables replaced.
type Hook struct {
	Name    string
	After   bool              // it runs after calls; else before them
	Tools   []string          // SERVER/TOOL, where * matches any text; nil: all
	Command string            // program to start; never through a shell
	Args    []string          // of Command
	Env     map[string]string // in addition to the environment that servers get
	Dir     string            // absolute folder to start in; empty: that of the caller
	Timeout time.Duration     // 0: not set

	Source string // "path:line" of its name

	filled
}

// MaxHookTimeout is the longest timeout of a hook.
const MaxHookTimeout = 10 * time.Minute

// Values is [Server.Values] for a hook.
func (h Hook) Values() []Value { return slices.Clone(h.values) }

// CommandLine is [Server.CommandLine] for a hook.
func (h Hook) CommandLine() []string {
	return Server{Command: h.Command, Args: h.Args, filled: h.filled}.CommandLine()
}

// Secrets is [Server.Secrets] for a hook.
func (h Hook) Secrets(named func(variable string) bool) []string { return h.secrets(named) }

var hookMembers = []string{"when", "tools", "command", "args", "env", "cwd", "timeout"}

// hooks reads the hooks under "patchbay". Each fault is one of the file as a whole: calls must not
// pass because a hook in front of them cannot be read.
func (l *loader) hooks(n *node) {
	const fix = `write {"NAME": {"when": "before", "command": "..."}}`
	if n.kind != '{' {
		l.fail(n.pos, `"hooks" is not an object`, fix)
		return
	}
	seen := make(map[string]int)
	for _, m := range n.members {
		switch {
		case l.twice(seen, m, "hook"):
		case strings.TrimSpace(m.name) == "":
			l.fail(m.pos, "the name of a hook is empty", "name it")
		case m.value.kind != '{':
			l.fail(m.value.pos, "the hook "+quote(m.name)+" is not an object", fix)
		default:
			l.hook(m)
		}
	}
}

func (l *loader) hook(m member) {
	h := Hook{Name: m.name, Source: l.source(m.pos)}
	faults := len(l.problems)
	seen, members := make(map[string]int), make(map[string]*node)
	for _, field := range m.value.members {
		if l.twice(seen, field, "member") {
			continue
		}
		members[field.name] = field.value
		if !slices.Contains(hookMembers, field.name) {
			l.fail(field.pos, "a hook has no member "+quote(field.name), "it has "+strings.Join(hookMembers, ", "))
		}
	}
	switch n := members["when"]; {
	case n == nil:
		l.fail(m.pos, "the hook "+quote(m.name)+" does not say when it runs", `add "when": "before" or "after"`)
	case n.kind != '"' || n.text != "before" && n.text != "after":
		l.fail(n.pos, `"when" has an unknown value`, `write "before" or "after"`)
	default:
		h.After = n.text == "after"
	}
	if n := members["tools"]; n != nil {
		if n.kind == '"' {
			n = &node{kind: '[', pos: n.pos, items: []*node{n}}
		}
		h.Tools = l.names(member{name: "tools", value: n})
		for _, pattern := range h.Tools {
			if pattern != "*" && !strings.Contains(pattern, "/") {
				l.fail(n.pos, "the tools "+quote(pattern)+" are not SERVER/TOOL", "write "+quote("*/"+pattern)+" or "+quote(pattern+"/*"))
			}
		}
	}
	v := values{loader: l, into: &h.filled}
	if h.Command = v.text(members, "command"); members["command"] == nil {
		l.fail(m.pos, "the hook "+quote(m.name)+" has no command", `add "command"`)
	}
	h.Args = v.list(members["args"])
	l.tildes(members["command"], members["args"], members["cwd"])
	h.Env = v.table(members, "env")
	h.Dir = absolute(l.expander.workspace, v.text(members, "cwd"))
	if len(h.inputs) > 0 {
		l.fail(m.pos, "the hook "+quote(m.name)+" has an input in it", "use a variable, ${env:NAME}")
	}
	if n := members["timeout"]; n != nil {
		if h.Timeout = l.duration("timeout", n); h.Timeout < 0 || h.Timeout > MaxHookTimeout {
			l.fail(n.pos, `"timeout" of a hook is too long`, fmt.Sprintf("write at most %q", "10m"))
		}
	}
	if len(l.problems) == faults {
		l.file.Hooks = append(l.file.Hooks, h)
	}
}
