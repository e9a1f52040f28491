package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
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
			a.print(fmt.Sprintf("%s: %s, no faults", a.shown(c.File), counted(set.Len(), "rule")))
		}
		return nil
	}
	listed := *access
	listed.Partial, listed.Arguments = true, nil
	shown := set.Decide(a.ctx, &listed)
	why := set.Explain(a.ctx, access)
	v := verdict{Allowed: why.Decision.Allow, Listed: shown.Allow || shown.Show && shown.Scopes != nil, Rule: why.Decision.Rule, Scopes: why.Decision.Scopes, Reason: why.Decision.Reason, Tried: why.Tried}
	if why.Decision.Err != nil {
		v.Err = why.Decision.Err.Error()
	}
	if a.JSON {
		if err := a.printJSON(v); err != nil {
			return err
		}
	} else {
		c.show(a, access, &v)
	}
	if !v.Allowed {
		return errRefused
	}
	return nil
}

// verdict is a decision, and the reason for it.
type verdict struct {
	Allowed bool          `json:"allowed"`
	Listed  bool          `json:"listed"` // lists include the feature
	Rule    string        `json:"rule"`   // the rule that decided; "default" for none
	Scopes  []string      `json:"scopes,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Err     string        `json:"error,omitempty"`
	Tried   []rules.Tried `json:"tried"`
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
			return nil, usagef("%q is an argument, but no feature is given", c.Args[0]).hint("patchbay policy check " + shell([]string{c.File}) + " --tool NAME " + shell(c.Args))
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
	if out.Principal, err = c.principal(); err != nil {
		return nil, err
	}
	said, err := c.annotations()
	if err != nil {
		return nil, err
	}
	out.Annotations = func() *policy.Annotations { return said }
	out.Client = func() mcp.Implementation { return mcp.Implementation{Name: c.Client} }
	return out, nil
}

// principal returns the caller; nil: anonymous.
func (c *policyCheckCmd) principal() (*auth.Principal, error) {
	if c.Principal == "" {
		if len(c.Scopes)+len(c.Roles)+len(c.Claims) > 0 {
			return nil, usagef("--scope, --role and --claim need --principal").hint("--principal apikey#ada")
		}
		return nil, nil
	}
	p := &auth.Principal{ID: c.Principal, Scopes: c.Scopes, Roles: c.Roles, Claims: map[string]any{}}
	if before, subject, ok := strings.Cut(c.Principal, "#"); ok {
		p.Subject = subject
		if strings.Contains(before, "://") {
			p.Issuer = before
		} else {
			p.Scheme = before
		}
	}
	for _, text := range c.Claims {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usagef("--claim %q is not NAME=VALUE", text)
		}
		var v any
		if err := jsonx.Unmarshal(arguments.Guess(value), &v); err != nil {
			return nil, usagef("--claim %s: %v", name, err)
		}
		p.Claims[name] = v
	}
	return p, nil
}

// annotations returns the annotations of the feature.
func (c *policyCheckCmd) annotations() (*policy.Annotations, error) {
	n := policy.Unannotated
	flags := map[string]*bool{"readOnlyHint": &n.ReadOnly, "destructiveHint": &n.Destructive, "idempotentHint": &n.Idempotent, "openWorldHint": &n.OpenWorld}
	for _, text := range c.Annotation {
		name, value, given := strings.Cut(text, "=")
		to := flags[name]
		switch {
		case name == "title":
			n.Title = value
		case name == "audience":
			n.Audience = append(n.Audience, value)
		case name == "priority" && json.Unmarshal([]byte(value), &n.Priority) == nil:
		case to != nil && (!given || value == "true"):
			*to = true
		case to != nil && value == "false":
			*to = false
		default:
			return nil, usagef("--annotation %q is not readOnlyHint, destructiveHint, idempotentHint or openWorldHint (=true or =false), title=, audience= or priority=", text)
		}
	}
	return &n, nil
}

// show prints a verdict for people.
func (c *policyCheckCmd) show(a *app, access *policy.Access, v *verdict) {
	what, style := "refused", "31"
	if v.Allowed {
		what, style = "allowed", "32"
	}
	feature := access.Name + access.Template
	switch {
	case access.Kind == "":
		feature = "method " + feature
	case access.Template != "":
		feature = "template " + feature
	default:
		feature = string(access.Kind) + " " + feature
	}
	if access.Server != "" {
		feature += " of " + access.Server
	}
	who := "an anonymous caller"
	if access.Principal != nil {
		who = access.Principal.ID
	}
	by := "by default, as no rule matches"
	for _, t := range v.Tried {
		if t.Rule == v.Rule {
			by = fmt.Sprintf("by rule %q (%s:%d)", t.Rule, filepath.Base(c.File), t.Line)
		}
	}
	a.print(a.paint(what, style) + " " + a.shown(fmt.Sprintf("%s: %s for %s", by, feature, who)))
	switch {
	case v.Err != "":
		a.print("refused, as the rule fails: " + a.shown(v.Err))
	case len(v.Scopes) > 0:
		a.print("scopes that would allow it, sent to the caller: " + a.shown(strings.Join(v.Scopes, " ")))
	case v.Reason != "":
		a.print("reason: " + a.shown(v.Reason))
	}
	switch {
	case access.Kind == "":
	case v.Listed:
		a.print("shown in lists")
	default:
		a.print("hidden from lists")
	}
	if len(v.Tried) == 0 {
		return
	}
	a.print("")
	g := &screen.Grid{}
	g.Add("RULE", "LINE", "EFFECT", "MATCHES", "REASON")
	for _, t := range v.Tried {
		var because []string
		for _, value := range t.Values {
			because = append(because, value.Of+" = "+value.Value)
		}
		if t.Err != "" {
			because = append(because, t.Err)
		}
		g.Add(t.Rule, fmt.Sprint(t.Line), t.Effect, t.Outcome, strings.Join(because, ", "))
	}
	a.printGrid(g)
}

// counted formats a number of things.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
