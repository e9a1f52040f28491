package main

import (
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/verdict"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

var policyCheckVerb = verb{
	name: "check", summary: "Check a file of rules, or explain a decision.", usage: "FILE [--tool NAME [ARGUMENT ...] | ...]",
	examples: []string{
		"patchbay policy check policy.yaml",
		"patchbay policy check policy.yaml -s shop --tool refund amount=500",
		"patchbay policy check policy.yaml --tool refund --principal apikey#ada",
	},
	server: namedServer,
	details: `Without a feature, checks only the file. Exit code 0: allowed; 6: refused; 1:
the file has faults.`,
	command: func() command { return new(policyCheckCmd) },
}

type policyCheckCmd struct {
	File string   `arg:"" help:"File of rules."`
	Args []string `arg:"" optional:"" name:"argument" help:"Arguments of the call, as patchbay call takes them."`
	verdict.Feature
	verdict.Caller
	Client     string   `placeholder:"NAME" help:"Name of the client."`
	Annotation []string `sep:"none" placeholder:"K=V" help:"Annotation of the tool, such as readOnlyHint=true."`
}

// errRefused reports that the policy refuses. The reason has been printed.
var errRefused = errors.New("refused by the policy")

// Run checks the file and, if the flags describe one, a decision.
func (c *policyCheckCmd) Run(a *app) error {
	set, err := rules.Load(c.File)
	if err != nil {
		return policyFault(err)
	}
	access, err := c.access(a)
	if err != nil {
		return err
	}
	if access == nil {
		if a.JSON {
			a.print(fmt.Sprintf(`{"rules":%d}`, set.Len()))
		} else {
			a.print(fmt.Sprintf("%s: %s, no faults", a.shown(c.File), quantity(set.Len(), "rule")))
		}
		return nil
	}
	v := verdict.Of(a.ctx, set, access)
	if a.JSON {
		if err := a.printJSON(v); err != nil {
			return err
		}
	} else {
		c.show(a, access, v)
	}
	if !v.Allowed {
		return errRefused
	}
	return nil
}

// access returns the access that the flags describe; nil: none.
func (c *policyCheckCmd) access(a *app) (*policy.Access, error) {
	out, err := c.Feature.Access(a.Server, c.File, c.Args)
	if out == nil || err != nil {
		return nil, err
	}
	words, err := a.readArguments(c.Args)
	if err != nil {
		return nil, err
	}
	if out.Arguments, err = arguments.Build(words, nil, nil, "patchbay help policy check"); err != nil {
		return nil, err
	}
	if out.Principal, err = c.Caller.Of(); err != nil {
		return nil, err
	}
	said, err := verdict.Annotations(c.Annotation)
	if err != nil {
		return nil, usagef("%w", err)
	}
	out.Annotations = func() *policy.Annotations { return said }
	out.Client = func() mcp.Implementation { return mcp.Implementation{Name: c.Client} }
	return out, nil
}

// show prints a verdict for people.
func (c *policyCheckCmd) show(a *app, access *policy.Access, v *verdict.Verdict) {
	outcome, style := "refused", "31"
	if v.Allowed {
		outcome, style = "allowed", "32"
	}
	lines := v.Lines(access, c.File)
	a.print(a.paint(outcome, style) + " " + a.shown(lines[0]))
	for _, line := range lines[1:] {
		a.print(a.shown(line))
	}
	if g := v.Grid(); g != nil {
		a.print("")
		a.printGrid(g)
	}
}
