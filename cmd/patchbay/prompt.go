package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/block"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

var promptVerb = verb{
	name: "prompt", summary: "Get a prompt.", usage: "PROMPT [ARGUMENT ...] [SERVER]",
	examples: []string{"patchbay prompt everything/test_prompt_with_arguments arg1=one arg2=two"},
	server:   oneServer | firstURLIsServer,
	command:  func() command { return new(promptCmd) },
}

type promptCmd struct {
	Name string   `arg:"" optional:"" help:"Name of the prompt, or SERVER/PROMPT."`
	Args []string `arg:"" optional:"" name:"argument" help:"key=value, key=@FILE, JSON, @FILE or -."`
}

func (*promptCmd) candidates(a *app, current string) (out []complete.Candidate) {
	if len(a.words) == 0 {
		return a.features(current, feature.Prompts)
	}
	return a.promptArguments(current)
}

func (c *promptCmd) Run(a *app) error {
	if c.Name == "" {
		return a.which(feature.Prompts)
	}
	c.Name = a.slashed(c.Name)
	words, err := a.readArguments(c.Args)
	if err != nil {
		return err
	}
	args, err := textArguments(words)
	if err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	params := map[string]any{"name": c.Name}
	if len(args) > 0 {
		params["arguments"] = args
	}
	raw, err := p.Raw(a.ctx, "prompts/get", params, a.listening()...)
	if err != nil {
		return a.unknown(p, feature.Prompts, c.Name, err)
	}
	if a.JSON {
		a.print(a.shown(string(raw)))
		return nil
	}
	return a.showPrompt(raw)
}

// textArguments returns the arguments of a prompt, which are texts.
func textArguments(words []arguments.Word) (map[string]string, error) {
	out := map[string]string{}
	for _, w := range words {
		switch {
		case w.Raw == nil:
			out[w.Key] = w.Value
		case w.Key != "":
			out[w.Key] = plain(w.Raw)
		default:
			var m map[string]json.RawMessage
			if err := jsonx.Unmarshal(w.Raw, &m); err != nil {
				return nil, usagef("arguments of a prompt: %v", err)
			}
			for k, v := range m {
				out[k] = plain(v)
			}
		}
	}
	return out, nil
}

func (a *app) showPrompt(raw json.RawMessage) error {
	list, _ := jsonx.Lookup(raw, "messages")
	if jsonx.KindOf(list) != '[' {
		return fmt.Errorf("prompts/get: the result has no array %q", "messages")
	}
	for item := range jsonx.Elements(list) {
		var m struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if err := jsonx.Unmarshal(item, &m); err != nil {
			return fmt.Errorf("prompts/get: a message: %w", err)
		}
		b, err := block.Decode(m.Content)
		if err != nil {
			return fmt.Errorf("prompts/get: a message: %w", err)
		}
		text, ok := b.Words()
		switch {
		case !ok:
			text = b.Describe()
		case b.Type == "resource":
			text = "[resource " + oneLine(b.Resource.URI) + "]\n" + text
		}
		role := oneLine(m.Role) + ": "
		text = strings.TrimRight(text, "\n")
		if a.tty.out && !a.Plain { // further lines are indented, so that roles are easy to see
			text = strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len(role)))
		}
		a.print(a.paint(role, "1") + a.shown(text))
	}
	return nil
}
