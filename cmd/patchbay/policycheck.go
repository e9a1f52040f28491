package main

import (
	"errors"
	"fmt"
	"strings"

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

	Tool     string `placeholder:"NAME" help:"Check this tool, by its name at the server."`
	Prompt   string `placeholder:"NAME" help:"Check this prompt."`
	Resource string `placeholder:"URI" help:"Check this resource."`
	Template string `placeholder:"URI" help:"Check this URI template, in lists."`
	Method   string `placeholder:"NAME" help:"Check this method, such as tasks/cancel."`

	Principal  string   `placeholder:"ID" help:"Caller, such as apikey#ada; default: anonymous."`
	Scopes     []string `name:"scope" placeholder:"SCOPE" help:"Scope of the caller (repeatable)."`
	Roles      []string `name:"role" placeholder:"ROLE" help:"Role of the caller (repeatable)."`
	Claims     []string `name:"claim" sep:"none" placeholder:"K=V" help:"Claim of the caller (repeatable)."`
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
	out := &policy.Access{Server: a.Server}
	given := 0
	for _, f := range []struct {
		name, value, method string
		kind                mcp.Kind
	}{
		{"--tool", c.Tool, "tools/call", mcp.KindTool}, {"--prompt", c.Prompt, "prompts/get", mcp.KindPrompt},
		{"--resource", c.Resource, "resources/read", mcp.KindResource}, {"--template", c.Template, "resources/read", mcp.KindResource},
	} {
		if f.value == "" {
			continue
		}
		given++
		out.Kind, out.Name, out.Method = f.kind, f.value, f.method
	}
	switch {
	case given > 1:
		return nil, usagef("--tool, --prompt, --resource and --template exclude each other")
	case given == 0 && c.Method == "":
		if len(c.Args) > 0 {
			return nil, usagef("%q is an argument, but no feature is given", c.Args[0]).Hint("patchbay policy check " + shell([]string{c.File}) + " --tool NAME " + shell(c.Args))
		}
		return nil, nil
	case given == 0:
		out.Name = c.Method
	case c.Template != "":
		out.Name, out.Template, out.Partial = "", c.Template, true
	}
	if c.Method != "" {
		out.Method = c.Method
		out.Partial = out.Partial || given > 0 && (strings.HasPrefix(c.Method, "tasks/") || c.Method == "completion/complete")
	}
	words, err := a.readArguments(c.Args)
	if err != nil {
		return nil, err
	}
	if out.Arguments, err = arguments.Build(words, nil, nil, "patchbay help policy check"); err != nil {
		return nil, err
	}
	switch {
	case c.Principal != "":
		if out.Principal, err = verdict.Principal(c.Principal, c.Scopes, c.Roles, c.Claims); err != nil {
			return nil, usagef("%w", err)
		}
	case len(c.Scopes)+len(c.Roles)+len(c.Claims) > 0:
		return nil, usagef("--scope, --role and --claim need --principal").Hint("--principal apikey#ada")
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
