package main

import (
	"fmt"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/mcp"
)

var promptsVerb = verb{
	name: "prompts", summary: "List prompts, or show one with its arguments.", usage: "[PROMPT] [SERVER]",
	examples: []string{"patchbay prompts -s everything", "patchbay prompts test_prompt_with_arguments -s everything"},
	server:   oneServer | urlIsServer | programIsServer,
	command:  func() command { return new(promptsCmd) },
}

type promptsCmd struct {
	Name string `arg:"" optional:"" help:"Show this prompt with its arguments."`
}

func (*promptsCmd) candidates(a *app, current string) (out []complete.Candidate) {
	if len(a.words) > 0 {
		return nil
	}
	return a.features(current, feature.Prompts)
}

func (c *promptsCmd) Run(a *app) error {
	c.Name = a.serverAlone(c.Name)
	if c.Name == "" {
		return items(a, feature.Prompts, func(p *mcp.Prompt) row {
			return row{Name: p.Name, About: about(p.Name, p.Title, p.Description)}
		})
	}
	c.Name = a.slashed(c.Name)
	p, err := a.open()
	if err != nil {
		return err
	}
	l, err := a.listFor(p, feature.Prompts, c.Name)
	if err != nil {
		return err
	}
	raw, names := pick(l.items, c.Name)
	if raw == nil {
		return &fault{Code: exitAnswer, Err: fmt.Errorf("%s has no prompt %q%s", a.serverName(), c.Name, didYouMean(c.Name, names)), Next: a.other("prompts")}
	}
	if a.JSON {
		a.print(a.shown(string(raw)))
		return nil
	}
	d, err := decode[mcp.Prompt](raw)
	if err != nil {
		return fmt.Errorf("invalid prompt %q: %w", c.Name, err)
	}
	a.head(d.Name, d.Title, d.Description)
	if len(d.Arguments) == 0 {
		a.print("\nno arguments")
		return nil
	}
	a.print("\narguments:")
	var rows []screen.Row
	for _, arg := range d.Arguments {
		name := "  " + arg.Name
		if arg.Required {
			name += arguments.RequiredMark
		}
		rows = append(rows, screen.Row{Name: name, About: about(arg.Name, arg.Title, arg.Description)})
	}
	a.rows(rows)
	return nil
}
