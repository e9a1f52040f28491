package main

import (
	"slices"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// configExportCmd prints the servers of mcp.json as another host has them.
type configExportCmd struct {
	Host    string   `arg:"" help:"The host."`
	Names   []string `arg:"" optional:"" help:"These servers alone."`
	Secrets bool     `help:"Print the values of env and headers too."`
}

func (c *configExportCmd) Run(a *app) error {
	if err := a.notServer(); err != nil {
		return err
	}
	h, err := hostNamed(c.Host)
	if err != nil {
		return err
	}
	path, err := a.configPath()
	if err != nil {
		return err
	}
	if path == "" {
		return usagef("there is no mcp.json to export").hint("patchbay config add NAME -- COMMAND")
	}
	doc, err := config.Open(path)
	if err != nil {
		return err
	}
	l := &hosts.Listing{Inputs: doc.Inputs()}
	hidden := 0
	var names []string
	for _, e := range doc.Entries() {
		names = append(names, e.Name)
		if len(c.Names) > 0 && !slices.Contains(c.Names, e.Name) {
			continue
		}
		if !c.Secrets {
			var n int
			e, n = hosts.Redact(e)
			hidden += n
			if telling(e) {
				a.talk.note("warning: %q: its arguments or its URL may hold a secret, and are printed as they are", e.Name)
			}
		}
		l.Servers = append(l.Servers, e)
	}
	for _, name := range c.Names {
		if !slices.Contains(names, name) {
			return usagef("%s has no server %q%s", here(path), name, didYouMean(name, names)).hint("patchbay config list")
		}
	}
	out, err := h.Write(l)
	if err != nil {
		return err
	}
	a.out.Write(out)
	slices.Sort(l.Notes)
	for _, note := range slices.Compact(l.Notes) {
		a.talk.note("%s", note)
	}
	if hidden > 0 {
		a.talk.note("%s of env and headers became variables; --secrets prints them as they are", quantity(hidden, "value"))
	}
	return nil
}

// telling reports whether the arguments or the URL of a server seem to hold a secret.
func telling(e config.Entry) bool {
	var args []string
	list, _ := jsonx.Lookup(e.Object, "args")
	if jsonx.KindOf(list) == '[' {
		for raw := range jsonx.Elements(list) {
			if arg, err := jsonx.Unquote(raw); err == nil {
				args = append(args, arg)
			}
		}
	}
	raw, _ := jsonx.Lookup(e.Object, "url")
	address, err := jsonx.Unquote(raw)
	return !slices.Equal(shownArgs(args), args) || err == nil && shownURL(address) != address
}
