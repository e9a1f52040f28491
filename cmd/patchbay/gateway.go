package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/people"
	"github.com/patchbay-dev/patchbay/config/deploy"
)

var gatewayVerb = verb{
	name: "gateway", summary: "Check the file that describes a deployment, and explain calls.",
	examples: []string{"patchbay gateway check gateway.yaml", "patchbay gateway explain jira_search --principal apikey#ada", "patchbay up --gateway gateway.yaml"},
	minor:    true,
	details: `gateway.yaml has the settings of one deployment, for --gateway of up, serve,
bridge, run and chat:
  servers: mcp.json
  listen: {http: 0.0.0.0:8443, cert: tls.pem}
  auth: ["apikeys:keys.jsonl"]
  ready: {wait: 5s, require: [db]}
  policy: policy.yaml
  limits: [100/s, "tool:web_*=60/h"]
  audit: {file: audit.jsonl, key: audit.key}
A value may be ${NAME} or {file: PATH}. docs/gateway.md describes all members.`,
	verbs: []*verb{&gatewayCheckVerb, &gatewayExplainVerb},
}

var gatewayCheckVerb = verb{
	name: "check", summary: "Check a gateway.yaml and the files it names.", usage: "FILE",
	examples: []string{"patchbay gateway check gateway.yaml", "patchbay gateway check gateway.yaml --json"},
	details:  `Starts nothing and opens no port. Exit code 2: the file has faults.`,
	command:  func() command { return new(gatewayCheckCmd) },
}

type gatewayCheckCmd struct {
	File     string `arg:"" help:"A gateway.yaml."`
	Insecure bool   `name:"insecure-no-auth" help:"Check it for a start with this flag, or with --client-ca."`
}

// gatewayProblem is the JSON form of a fault or a warning.
type gatewayProblem struct {
	File   string `json:"file,omitempty"` // empty: the one that is checked
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
	Fix    string `json:"fix,omitempty"`
}

// Run prints the faults, the warnings and the notes of the file.
func (c *gatewayCheckCmd) Run(a *app) error {
	p := a.program()
	f, err := p.Check(c.File, c.Insecure)
	var bad deploy.Problems
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	var warnings, notes deploy.Problems
	if err == nil {
		warnings, notes = append(f.Warnings, a.distrusted(f)...), f.Notes
	}
	if a.JSON {
		listed := func(list deploy.Problems) []gatewayProblem {
			out := []gatewayProblem{}
			for _, p := range list {
				if p.Path == c.File {
					p.Path = ""
				}
				out = append(out, gatewayProblem{p.Path, p.Line, p.Column, p.Text, p.Fix})
			}
			return out
		}
		if err := a.printJSON(map[string][]gatewayProblem{"faults": listed(bad), "warnings": listed(warnings), "notes": listed(notes)}); err != nil {
			return err
		}
		if err != nil {
			return usagef("%s has %s", c.File, quantity(len(bad), "fault"))
		}
		return nil
	}
	if err != nil {
		return &fault{Code: exitUsage, Err: bad}
	}
	a.print(a.shown(c.File) + ": no faults")
	for _, w := range warnings {
		a.print("warning: " + a.shown(w.String()))
	}
	for _, n := range notes {
		a.print("note: " + a.shown(n.String()))
	}
	return nil
}

// distrusted returns the warning that up would not start with the mcp.json that it finds, because the
// person has not agreed to it.
func (a *app) distrusted(f *deploy.File) deploy.Problems {
	if f.Servers != "" {
		return nil
	}
	read, err := a.inspectConfig()
	if err != nil || read.file == nil {
		return nil
	}
	if yes, err := a.agreed(read.file); err != nil || yes {
		return nil
	}
	path := here(read.file.Path)
	return deploy.Problems{f.Problem("servers", path+" is not trusted yet, so up does not start", "add servers: "+path+", or run patchbay config trust "+shell([]string{path}))}
}

// deployment reads and checks a gateway.yaml.
func (a *app) deployment(path string) (*deploy.File, error) {
	p := a.program()
	f, err := p.Load(path)
	var bad deploy.Problems
	if errors.As(err, &bad) {
		return nil, &fault{Code: exitUsage, Err: bad}
	}
	return f, err
}

// elsewhere returns the next step for an address that cannot be used: to change the member of gateway.yaml
// that sets it, else flags.
func (a *app) elsewhere(member, flags string) string {
	if a.deployed == nil || !a.deployed.Has(member) {
		return flags
	}
	return "set " + member + " in " + a.deployed.Path + " to another address; port 0: any free port"
}

// reached has the flags of a verb that clients reach.
type reached struct {
	*protection
	*measured
	http  *string // the address
	stdio bool    // --stdio is given
}

// useless are the members of gateway.yaml that have no effect on a verb.
var useless = map[string][]string{
	"serve": {"servers", "ready", "views", "page", "cluster", "listen.admin"}, "bridge": {"views", "page", "cluster", "listen.admin"},
	"run": {"listen", "auth", "login", "ready", "views", "page", "cluster"}, "chat": {"listen", "auth", "login", "ready", "views", "page", "cluster"},
}

// memberFlags are the flags that set the same as members.
var memberFlags = map[string]string{
	"servers": "--config", "listen.http": "--http", "listen.cert": "--tls-cert", "listen.key": "--tls-key", "listen.metrics": "--metrics", "listen.api": "--api",
	"auth": "--auth", "policy": "--policy", "limits": "--limit", "audit": "--audit", "record": "--record",
}

// deploy reads the file of --gateway, and sets the flags that its members stand for; r is nil for verbs
// that clients do not reach. Without the flag it does nothing.
func (a *app) deploy(g *governed, l *limits, r *reached) error {
	if g.Gateway == "" {
		return nil
	}
	f, err := a.deployment(g.Gateway)
	if err != nil {
		return err
	}
	excludes := func(member, flag string) error {
		return usagef("%s", f.Problem(member, member+" and "+flag+" exclude each other", "keep one"))
	}
	for _, member := range useless[a.verb] {
		if f.Has(member) {
			return usagef("%s", f.Problem(member, member+" has no effect on patchbay "+a.verb, "remove it, or write a file of its own for "+a.verb))
		}
	}
	for member, flag := range memberFlags {
		if f.Has(member) && slices.ContainsFunc(a.flags, func(f string) bool { return strings.HasPrefix(f, flag+"=") }) {
			return excludes(member, flag)
		}
	}
	for _, member := range []string{"listen.http", "listen.cert", "listen.api", "auth", "login", "cluster"} {
		if r != nil && r.stdio && f.Has(member) {
			return excludes(member, "--stdio")
		}
	}
	switch {
	case f.Has("servers") && len(a.Servers) > 0 && a.verb != "bridge":
		return excludes("servers", "-s")
	case f.Has("servers") && a.dashed:
		return excludes("servers", "a command after --")
	}
	for _, w := range f.Warnings {
		a.talk.Note("warning: %s", w)
	}
	a.deployed, a.Config, g.Policy = f, cmp.Or(f.Servers, a.Config), cmp.Or(f.Policy, g.Policy)
	l.Limit = append(l.Limit, f.Limits...)
	if f.Record != nil {
		a.record = *f.Record
	}
	if r == nil {
		return nil
	}
	if f.Record != nil {
		r.Record = f.Record.Dir
	}
	*r.http, r.Metrics = cmp.Or(f.Listen.HTTP, *r.http), cmp.Or(f.Listen.Metrics, r.Metrics)
	r.API = r.API || f.Listen.API
	r.TLSCert, r.TLSKey = cmp.Or(f.Listen.Cert, r.TLSCert), cmp.Or(f.Listen.Key, r.TLSKey)
	r.Auth, r.Login, r.Explain = append(r.Auth, f.Auth...), people.Login(f.Login), people.Explain(f)
	return nil
}
