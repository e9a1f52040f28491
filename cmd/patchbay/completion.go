package main

import (
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
)

var completionVerb = verb{
	name: "completion", summary: "Print the completion script of a shell.", usage: "bash | zsh | fish | powershell",
	examples: []string{
		"patchbay completion bash > ~/.local/share/bash-completion/completions/patchbay",
		"patchbay completion fish > ~/.config/fish/completions/patchbay.fish",
	},
	minor: true,
	details: `Completes verbs, flags and servers, and the names, arguments and values of the
server on the command line, which it starts for at most 2.5 s. Lists are cached
for 5 minutes, in the user's cache folder.`,
	command: func() command { return new(completionCmd) },
}

// completionCmd prints a script that adds completion of this program to a shell.
type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh, fish or powershell."`
}

func (c *completionCmd) Run(a *app) error {
	script := complete.Script(c.Shell)
	if script == "" {
		return usagef("no completion for %q; shells: %s", c.Shell, strings.Join(complete.Shells(), ", ")).Hint("patchbay help completion")
	}
	a.out.WriteString(script)
	return nil
}

func (*completionCmd) candidates(*app, string) (out []complete.Candidate) {
	for _, name := range complete.Shells() {
		out = append(out, complete.Candidate{Text: name})
	}
	return out
}
