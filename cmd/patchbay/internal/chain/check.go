package chain

import (
	"errors"
	"net"
	"slices"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/listen"
)

// Check is [Program.Load] before a start. An endpoint that other machines reach without authentication is
// a fault, unless open says that a flag will allow it. The warnings of the file have what a start would
// print: faults of single servers in mcp.json, an audit log that another process writes to, and metrics
// that other machines reach.
func (p *Program) Check(path string, open bool) (*deploy.File, error) {
	f, err := deploy.Load(path)
	if err != nil {
		return nil, err
	}
	c := &check{file: f}
	c.values(p)
	if _, _, err := listen.Address(f.Listen.HTTP, open || known(f)); f.Listen.HTTP != "" && errors.Is(err, listen.ErrShared) {
		c.faults = append(c.faults, Shared(f))
	}
	if err := c.sorted(); err != nil {
		return nil, err
	}
	warn := func(member, text, fix string) { f.Warnings = append(f.Warnings, f.Problem(member, text, fix)) }
	if _, _, err := listen.Address(f.Listen.Metrics, false); f.Listen.Metrics != "" && errors.Is(err, listen.ErrShared) {
		warn("listen.metrics", "other machines can read the metrics, with the names of servers and tools", "use 127.0.0.1 if they must not")
	}
	if f.Audit != nil && audit.InUse(f.Audit.File) {
		warn("audit.file", "audit.file: another process writes to "+f.Audit.File, "end it before the start, or name another file")
	}
	slices.SortStableFunc(f.Warnings, inOrder)
	slices.SortStableFunc(f.Notes, inOrder)
	if f.Servers != "" {
		_, faults, _ := config.Inspect(f.Servers, nil) // Load has reported its error
		for _, s := range faults {
			if s.Server != "" && !s.Disabled {
				f.Warnings = append(f.Warnings, deploy.Problem{Path: s.Path, Line: s.Line, Column: s.Column, Text: s.Text, Fix: s.Fix})
			}
		}
	}
	return f, nil
}

// Shared returns the fault of a listen.http that other machines reach without authentication.
func Shared(f *deploy.File) deploy.Problem {
	return f.Problem("listen.http", "listen.http: "+listen.ErrShared.Error(), "add auth or login, use 127.0.0.1, or give the flag --client-ca or --insecure-no-auth")
}

// known reports whether a file says who the callers are.
func known(f *deploy.File) bool { return len(f.Auth) > 0 || f.Login != nil }

// addresses checks those of listen, as far as no flag changes the outcome.
func (c *check) addresses() {
	of := func(member, address string, shared bool) *net.TCPAddr {
		if address == "" {
			return nil
		}
		complete, _, err := listen.Address(address, shared)
		if err != nil && !errors.Is(err, listen.ErrShared) {
			c.report(member, err)
			return nil
		}
		at, err := net.ResolveTCPAddr("tcp", complete)
		c.report(member, err)
		return at
	}
	if _, _, err := listen.Address(c.file.Listen.Admin, known(c.file)); c.file.Listen.Admin != "" && errors.Is(err, listen.ErrShared) {
		c.faults = append(c.faults, SharedAdmin(c.file))
	}
	members := []string{"listen.http", "listen.metrics", "listen.admin"}
	at := []*net.TCPAddr{
		of(members[0], c.file.Listen.HTTP, known(c.file)), of(members[1], c.file.Listen.Metrics, false), of(members[2], c.file.Listen.Admin, known(c.file)),
	}
	all := func(a *net.TCPAddr) bool { return a.IP == nil || a.IP.IsUnspecified() }
	for i, b := range at {
		for j, a := range at[:i] {
			if a != nil && b != nil && a.Port == b.Port && a.Port != 0 && (a.IP.Equal(b.IP) || all(a) || all(b)) {
				c.fault(members[i], "use another port", "%s and %s have the same port", members[i], members[j])
			}
		}
	}
}

// SharedAdmin returns the fault of a listen.admin that other machines reach without authentication.
func SharedAdmin(f *deploy.File) deploy.Problem {
	return f.Problem("listen.admin", "listen.admin: anyone who can reach this address could restart and disable servers: there is no authentication", "add auth, or use 127.0.0.1")
}
