package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/launch"
)

var completeVerb = verb{
	name: "complete", summary: "Complete an argument of a prompt or template.", usage: "PROMPT|TEMPLATE ARG=PREFIX [KEY=VALUE ...] [SERVER]",
	examples: []string{"patchbay complete everything/test_prompt_with_arguments arg1=p", "patchbay complete 'test://template/{id}/data' id=4 -s everything"},
	minor:    true,
	server:   oneServer,
	details:  `Prints one value a line. KEY=VALUE: arguments that are already filled in.`,
	command:  func() command { return new(completeCmd) },
}

// completeCmd asks a server for values of an argument (server/utilities/completion of
// every revision).
type completeCmd struct {
	Of   string   `arg:"" name:"prompt" help:"Name of a prompt, or URI of a resource template."`
	Args []string `arg:"" name:"argument" help:"ARGUMENT=PREFIX, then others as key=value."`
}

func (*completeCmd) candidates(a *app, current string) (out []complete.Candidate) {
	if len(a.words) == 0 {
		return append(a.features(current, feature.Prompts), a.features(current, feature.Templates)...)
	}
	return a.promptArguments(current)
}

func (c *completeCmd) Run(a *app) error {
	c.Of = a.slashed(c.Of)
	if !strings.Contains(c.Args[0], "=") {
		c.Args[0] += "="
	}
	words, err := a.readArguments(c.Args)
	if err != nil {
		return err
	}
	if words[0].Raw != nil {
		return usagef("the first argument must be NAME=PREFIX, the one to complete").Hint("patchbay help complete")
	}
	others, err := textArguments(words[1:])
	if err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	raw, err := p.Raw(a.ctx, "completion/complete", complete.Params(c.Of, words[0].Key, words[0].Value, others))
	if err != nil {
		return &fault{Err: a.noList(err, "completions"), Next: a.other(listVerb(c.Of))}
	}
	if a.JSON {
		a.print(a.shown(string(raw)))
		return nil
	}
	var w complete.Result
	if err := jsonx.Unmarshal(raw, &w); err != nil {
		return fmt.Errorf("completion/complete: result: %w", err)
	}
	for _, v := range w.Completion.Values {
		a.print(a.shown(v))
	}
	switch n := len(w.Completion.Values); {
	case n == 0:
		if err := a.unknownArgument(p, c.Of, words[0].Key); err != nil {
			return err
		}
		a.talk.Note("%s has no suggestions", a.serverName())
	case w.Completion.Total > n:
		a.talk.Note("%d of %d; a longer prefix narrows them down", n, w.Completion.Total)
	case w.Completion.HasMore:
		a.talk.Note("there are more; a longer prefix narrows them down")
	}
	return nil
}

// unknownArgument returns an error that names the arguments of a prompt, if it does not have one of this name.
func (a *app) unknownArgument(p *launch.Session, prompt, name string) error {
	l, err := a.listOnce(p, feature.Prompts)
	if err != nil || complete.IsTemplate(prompt) {
		return nil
	}
	var w struct {
		Arguments []struct {
			Name string `json:"name"`
		} `json:"arguments"`
	}
	raw, _ := pick(l.items, prompt)
	if raw == nil || jsonx.Unmarshal(raw, &w) != nil {
		return nil
	}
	var names []string
	for _, arg := range w.Arguments {
		if names = append(names, arg.Name); arg.Name == name {
			return nil
		}
	}
	about := cmp.Or(didYouMean(name, names), "; it has "+cmp.Or(strings.Join(names, ", "), "none"))
	err = fmt.Errorf("the prompt %q has no argument %q%s", prompt, name, about)
	return &fault{Code: exitAnswer, Err: err, Next: a.other("prompts", prompt)}
}

func listVerb(of string) string {
	if complete.IsTemplate(of) {
		return "templates"
	}
	return "prompts"
}
