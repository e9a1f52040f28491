package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/people"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/follow"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/policy/rules"
	"github.com/patchbay-dev/patchbay/telemetry/otlp"
)

// Load reads the deployment that a gateway.yaml describes, and checks its values as up uses them: the
// files it names, addresses, credentials and limits. Its faults are [deploy.Problems]. File names in
// the SPECs of Auth are absolute.
func (p *Program) Load(path string) (*deploy.File, error) { return p.load(path, nil) }

// load is Load. It does not check the SPECs of Auth that are in use: their verifiers follow their files.
func (p *Program) load(path string, inUse []string) (*deploy.File, error) {
	f, err := deploy.Load(path)
	if err != nil {
		return nil, err
	}
	c := &check{file: f, inUse: inUse}
	c.values(p)
	if err := c.sorted(); err != nil {
		return nil, err
	}
	return f, nil
}

// values checks the values of the file.
func (c *check) values(p *Program) {
	f := c.file
	c.servers()
	c.limits()
	c.auth(p)
	c.login()
	if f.Telemetry != nil {
		c.report("telemetry.otlp", (&otlp.Options{Endpoint: f.Telemetry.OTLP}).Check())
		c.report("telemetry.headers", (&otlp.Options{Endpoint: "http://localhost", Headers: f.Telemetry.Headers}).Check())
	}
	c.audit()
	c.views(p)
	if f.Record != nil {
		c.report("record.dir", folder(f.Record.Dir))
	}
	if f.Policy != "" {
		_, err := rules.Load(f.Policy)
		c.report("policy", err)
	}
	if f.Listen.Cert != "" {
		_, err := tlsfiles.Open(f.Listen.Cert, f.Listen.Key, "", p.Logger)
		c.report("listen.cert", err)
	}
	c.cluster(p)
	c.addresses()
}

// cluster checks the files of the member cluster.
func (c *check) cluster(p *Program) {
	of := c.file.Cluster
	if of == nil {
		return
	}
	if of.Store != "" {
		c.report("cluster.store", folder(of.Store))
	}
	if of.Credentials != "" {
		_, err := os.Stat(of.Credentials)
		c.report("cluster.credentials", err)
	}
	if of.Cert != "" {
		_, err := tlsfiles.Open(of.Cert, of.Key, "", p.Logger)
		c.report("cluster.cert", err)
	}
	if of.CA != "" {
		_, err := tlsfiles.Client(of.CA, "", "")
		c.report("cluster.ca", err)
	}
	if l := c.file.Login; l != nil && l.URL == "" {
		c.fault("login", "add url: https://mcp.example.com to login, the URL of the load balancer", "login needs the URL with which hosts reach the nodes")
	}
}

// sorted returns the faults in the order of the file; nil: there are none.
func (c *check) sorted() error {
	if len(c.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(c.faults, inOrder)
	return c.faults
}

// inOrder compares the places of two problems.
func inOrder(a, b deploy.Problem) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) }

// check collects the faults of a deployment.
type check struct {
	file   *deploy.File
	inUse  []string // SPECs of Auth that are not checked
	faults deploy.Problems
}

func (c *check) fault(member, fix, format string, args ...any) {
	c.faults = append(c.faults, c.file.Problem(member, fmt.Sprintf(format, args...), fix))
}

// report records an error; the faults of another file one by one.
func (c *check) report(member string, err error) {
	var rules deploy.Problems
	var servers config.Problems
	switch {
	case err == nil:
	case errors.As(err, &rules):
		c.faults = append(c.faults, c.file.Problem(member, strings.TrimSpace(rules.Error()), ""))
	case errors.As(err, &servers):
		c.faults = append(c.faults, c.file.Problem(member, strings.TrimSpace(servers.Error()), ""))
	default:
		c.fault(member, "", "%s: %v", member, err)
	}
}

// servers checks that mcp.json can be read and has the required servers. Faults of single servers do
// not count, as up starts the others.
func (c *check) servers() {
	if c.file.Servers == "" {
		return
	}
	f, faults, err := config.Inspect(c.file.Servers, nil)
	if err != nil {
		c.report("servers", err)
		return
	}
	var names []string
	for _, p := range faults {
		if names = append(names, p.Server); p.Server == "" && p.Model == "" {
			c.fault("servers", "", "%s", p)
		}
	}
	if f != nil {
		for _, s := range f.Servers {
			names = append(names, s.Name)
		}
	}
	for i, name := range c.file.Ready.Require {
		if !slices.Contains(names, name) {
			c.fault(fmt.Sprintf("ready.require[%d]", i), "add it to "+c.file.Servers, "there is no server %q", name)
		}
	}
}

func (c *check) limits() {
	l := new(limit.Limiter)
	for i, text := range c.file.Limits {
		if err := listen.AddLimit(l, text); err != nil {
			c.fault(fmt.Sprintf("limits[%d]", i), helpLimits, "%v", err)
		}
	}
	if _, err := newLimiter(c.file.Limits, true); err != nil && len(c.faults) == 0 {
		c.fault("limits", helpLimits, "%s", strings.TrimPrefix(err.Error(), "--limit "))
	}
}

// auth makes the verifiers of SPECs, which reads their files, and makes the file names in the SPECs
// absolute.
func (c *check) auth(p *Program) {
	for i, text := range c.file.Auth {
		member := fmt.Sprintf("auth[%d]", i)
		text = listen.InFolder(c.file.Dir(), text)
		c.file.Auth[i] = text
		if slices.Contains(c.inUse, text) {
			continue
		}
		v, err := listen.Verifier(text, p.Logger)
		if err == nil {
			err = (&auth.Guard{Verifiers: []auth.Verifier{v}, Resource: &auth.ResourceMetadata{Resource: "https://localhost/mcp"}, Logger: p.Logger}).Check()
		}
		switch {
		case err == nil:
		case c.file.Literal(member):
			c.fault(member, helpAuth, "%s: %s", member, strings.TrimPrefix(err.Error(), "auth: Guard: "))
		default: // it may be a secret
			c.fault(member, "write a secret as env:NAME; "+helpAuth, "%s cannot be used; its value, from a variable or a file, is not shown", member)
		}
	}
}

// login checks the member login.
func (c *check) login() {
	if c.file.Login == nil {
		return
	}
	for _, f := range people.Check(c.file.Login) {
		problem := c.file.Problem(f.Member, f.Text, f.Fix)
		if f.Warning {
			c.file.Warnings = append(c.file.Warnings, problem)
			continue
		}
		c.faults = append(c.faults, problem)
	}
	if c.file.Login.Dir != "" {
		c.report("login.dir", folder(c.file.Login.Dir))
	}
}

const helpAuth = "patchbay help auth"

// followFile follows the gateway.yaml of the chain until ctx ends. Changed teams, and changed limits
// unless those of a flag are in use, count from the next request on; apply gets a changed ready member.
// For other changes it prints that they need a restart. Faults in the
// files of credentials that are in use do not count here: see [auth.Guard.Faults].
func (c *Chain) followFile(ctx context.Context, apply func(deploy.Ready)) {
	began, talk := c.config.File, c.program.Talk
	last := began
	live := []string{"ready", "teams"}
	if c.views != nil {
		live = append(live, "views")
	}
	if slices.Equal(began.Limits, c.config.Limits) {
		live = append(live, "limits")
	}
	c.follow(ctx, began.Path, func() follow.Look {
		if g := c.guard.Load(); g != nil {
			g.Faults() // logs new ones
		}
		also := began.Files
		f, err := c.program.load(began.Path, began.Auth)
		if err != nil {
			look := faulty(began.Path, "the gateway is unchanged", err)
			look.Also = also
			return look
		}
		if changed := f.Changed(last); len(changed) > 0 {
			var now []string
			for _, member := range changed {
				if slices.Contains(live, member) {
					now = append(now, member)
				}
			}
			if slices.Contains(now, "limits") {
				l, err := newLimiter(f.Limits, c.config.HTTP)
				if err != nil {
					return faulty(f.Path, "the gateway is unchanged", err)
				}
				c.limits.set(l)
			}
			c.teams.Store(&f.Teams)
			if c.views != nil {
				c.views.set(f)
			}
			apply(f.Ready)
			c.configured("changed", map[string]string{"gateway": f.Digest, "changed": strings.Join(changed, ", ")})
			if len(now) > 0 {
				talk.Note("%s: changed %s", f.Path, strings.Join(now, " and "))
			}
			if c.views != nil && slices.Contains(now, "views") {
				c.views.Warn()
			}
			last = f
		}
		look := follow.Look{Also: f.Files}
		fixed := slices.DeleteFunc(f.Changed(began), func(member string) bool { return slices.Contains(live, member) })
		if len(fixed) > 0 {
			look.Fault = fmt.Sprintf("patchbay: %s: changes of %s need a restart", f.Path, strings.Join(fixed, ", "))
		}
		return look
	})
}
