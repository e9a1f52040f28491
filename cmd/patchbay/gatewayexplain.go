package main

import (
	"os"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/explain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

var gatewayExplainVerb = verb{
	name: "explain", summary: "Explain what a gateway does with a call of a tool.", usage: "TOOL [ARGUMENT ...]",
	examples: []string{
		"patchbay gateway explain jira_search --principal apikey#ada",
		"patchbay gateway explain search --view support --claims ada.json text=x",
	},
	details: `Says which rule decides, at which view the tool is, and what else applies. Sends
nothing to a server; a running up tells the tools. Exit code 6: refused.`,
	command: func() command { return new(gatewayExplainCmd) },
}

type gatewayExplainCmd struct {
	Tool    string   `arg:"" help:"Name of the tool at the gateway, or in the view."`
	Args    []string `arg:"" optional:"" name:"argument" help:"Arguments of the call, as patchbay call takes them."`
	Gateway string   `default:"gateway.yaml" placeholder:"FILE" help:"Explain for this file."`
	View    string   `placeholder:"NAME" help:"Explain for this view alone."`
	explain.Caller
	Annotation []string `sep:"none" placeholder:"K=V" help:"Annotation of the tool, such as readOnlyHint=true."`
}

// Run prints the explanation.
func (c *gatewayExplainCmd) Run(a *app) error {
	if _, err := os.Stat(c.Gateway); err != nil {
		return usagef("%w", err).Hint(a.again("--gateway", "FILE"))
	}
	f, err := a.deployment(c.Gateway)
	if err != nil {
		return err
	}
	if f.Servers != "" {
		a.Config = f.Servers
	}
	read, err := a.inspectConfig()
	if err != nil {
		return err
	}
	if read.file == nil {
		return usagef("no mcp.json was found for %s", c.Gateway).Hint("add servers: mcp.json to " + c.Gateway)
	}
	d := &explain.Deployment{File: f, Servers: read.file, Program: a.program(), Trusted: trustedServer}
	if err := d.Ask(a.ctx); err != nil {
		a.talk.Note("warning: %v", err)
	}
	call := &explain.Call{Tool: c.Tool, View: c.View}
	if call.Principal, err = c.Of(f); err != nil {
		return err
	}
	if call.Annotations, err = explain.Annotations(c.Annotation); err != nil {
		return usagef("%w", err)
	}
	words, err := a.readArguments(c.Args)
	if err != nil {
		return err
	}
	if call.Arguments, err = arguments.Build(words, nil, nil, "patchbay help gateway explain"); err != nil {
		return err
	}
	e, err := d.Explain(a.ctx, call)
	if err != nil {
		return chainFault(err)
	}
	if a.JSON {
		err = a.printJSON(e)
	} else {
		outcome, style := "refused", "31"
		if e.Allowed {
			outcome, style = "allowed", "32"
		}
		for i, line := range e.Lines(d.Source) {
			if head := screen.Pad(line[0], 9); i == 0 {
				a.print(a.paint(screen.Pad(outcome, 9), style) + a.shown(oneLine(line[1])))
			} else {
				a.print(head + a.shown(oneLine(line[1])))
			}
		}
	}
	if err == nil && !e.Allowed {
		err = errRefused
	}
	return err
}
