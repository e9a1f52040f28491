package main

import (
	"strings"
)

var rawVerb = verb{
	name: "raw", summary: "Send any request.", usage: "METHOD [JSON] [SERVER]",
	examples: []string{"patchbay raw tools/list -s everything", `patchbay raw tools/call '{"name": "test_simple_text"}' -s everything`},
	minor:    true,
	server:   oneServer | firstURLIsServer,
	details: `JSON is the params, in the form of revision 2026-07-28. They are converted to
the revision of the server.`,
	command: func() command { return new(rawCmd) },
}

type rawCmd struct {
	Method string `arg:"" help:"The method, such as tools/list."`
	Params string `arg:"" optional:"" help:"A JSON object, @FILE, or - for standard input."`
}

func (c *rawCmd) Run(a *app) error {
	var params any
	if c.Params != "" {
		if !strings.HasPrefix(c.Params, "{") && !strings.HasPrefix(c.Params, "@") && c.Params != "-" {
			return usagef("the params %q are not a JSON object", c.Params).Hint("patchbay help raw")
		}
		words, err := a.readArguments([]string{c.Params})
		if err != nil {
			return err
		}
		params = words[0].Raw
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	raw, err := p.Raw(a.ctx, c.Method, params, a.listening()...)
	if err != nil {
		return err
	}
	a.talk.EndProgress()
	if a.tty.out && !a.JSON && !a.Plain {
		a.print(a.shownJSON(raw))
		return nil
	}
	a.print(a.shown(string(raw)))
	return nil
}
