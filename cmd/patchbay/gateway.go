package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/config/deploy"
)

var gatewayVerb = verb{
	name: "gateway", summary: "Check the file that describes a deployment of up.",
	examples: []string{"patchbay gateway check gateway.yaml", "patchbay up --gateway gateway.yaml"},
	minor:    true,
	details: `gateway.yaml has the settings of one deployment:
  servers: mcp.json
  listen: {http: 0.0.0.0:8443, cert: tls.pem}
  auth: ["apikeys:keys.jsonl"]
  ready: {wait: 5s, require: [db]}
  policy: policy.yaml
  limits: [100/s, "tool:web_*=60/h"]
A value may be ${NAME} or {file: PATH}. docs/gateway.md describes all members.`,
	verbs: []*verb{&gatewayCheckVerb},
}

var gatewayCheckVerb = verb{
	name: "check", summary: "Check a gateway.yaml and the files it names.", usage: "FILE",
	examples: []string{"patchbay gateway check gateway.yaml", "patchbay gateway check gateway.yaml --json"},
	details:  `Starts nothing and opens no port. Exit code 2: the file has faults.`,
	command:  func() command { return new(gatewayCheckCmd) },
}

type gatewayCheckCmd struct {
	File string `arg:"" help:"A gateway.yaml."`
}

// gatewayProblem is the JSON form of a fault or a warning.
type gatewayProblem struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
	Fix    string `json:"fix,omitempty"`
}

// Run prints the faults and the warnings of the file.
func (c *gatewayCheckCmd) Run(a *app) error {
	f, err := a.deployment(c.File)
	var bad deploy.Problems
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	var warnings deploy.Problems
	if err == nil {
		warnings = f.Warnings
	}
	if a.JSON {
		listed := func(list deploy.Problems) []gatewayProblem {
			out := []gatewayProblem{}
			for _, p := range list {
				out = append(out, gatewayProblem{p.Line, p.Column, p.Text, p.Fix})
			}
			return out
		}
		if err := a.printJSON(map[string][]gatewayProblem{"faults": listed(bad), "warnings": listed(warnings)}); err != nil {
			return err
		}
		if err != nil {
			return usagef("%s has %s", c.File, quantity(len(bad), "fault"))
		}
		return nil
	}
	if err != nil {
		return err
	}
	a.print(a.shown(c.File) + ": no faults")
	for _, w := range warnings {
		a.print("warning: " + a.shown(w.String()))
	}
	return nil
}

// deployment reads and checks a gateway.yaml.
func (a *app) deployment(path string) (*deploy.File, error) {
	p := a.program()
	f, err := p.Load(path)
	var bad deploy.Problems
	if errors.As(err, &bad) {
		return nil, &fault{code: exitUsage, err: bad}
	}
	return f, err
}

// deployment reads the file of --gateway, and sets the flags that its members stand for; nil without
// the flag.
func (c *upCmd) deployment(a *app) (*deploy.File, error) {
	if c.Gateway == "" {
		return nil, nil
	}
	f, err := a.deployment(c.Gateway)
	if err != nil {
		return nil, err
	}
	excludes := func(member, flag string) error {
		return usagef("%s", f.Problem(member, member+" and "+flag+" exclude each other", "keep one"))
	}
	given := func(flag string) bool {
		return slices.ContainsFunc(a.flags, func(f string) bool { return strings.HasPrefix(f, flag+"=") })
	}
	for member, flag := range map[string]string{
		"servers": "--config", "listen.http": "--http", "listen.cert": "--tls-cert", "listen.key": "--tls-key", "listen.metrics": "--metrics", "auth": "--auth", "policy": "--policy", "limits": "--limit", "audit": "--audit", "record": "--record",
	} {
		if f.Has(member) && given(flag) {
			return nil, excludes(member, flag)
		}
	}
	for _, member := range []string{"listen.http", "listen.cert", "auth"} {
		if c.Stdio && f.Has(member) {
			return nil, excludes(member, "--stdio")
		}
	}
	switch {
	case f.Has("servers") && len(a.Servers) > 0:
		return nil, excludes("servers", "-s")
	case f.Has("servers") && a.dashed:
		return nil, excludes("servers", "a command after --")
	}
	for _, w := range f.Warnings {
		a.talk.Note("warning: %s", w)
	}
	a.Config, c.HTTP, c.Policy = cmp.Or(f.Servers, a.Config), cmp.Or(f.Listen.HTTP, c.HTTP), cmp.Or(f.Policy, c.Policy)
	c.TLSCert, c.TLSKey = cmp.Or(f.Listen.Cert, c.TLSCert), cmp.Or(f.Listen.Key, c.TLSKey)
	c.Metrics = cmp.Or(f.Listen.Metrics, c.Metrics)
	if f.Record != nil {
		a.record, c.Record = *f.Record, f.Record.Dir
	}
	c.Auth, c.Limit = append(c.Auth, f.Auth...), append(c.Limit, f.Limits...)
	return f, nil
}
