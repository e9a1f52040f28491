package main

import (
	"runtime"
	"slices"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
)

var configExportVerb = verb{
	name: "export", summary: "Print the servers in the format of another host.", usage: "HOST [NAME ...]",
	examples: []string{"patchbay config export cursor", "patchbay config export codex memory"},
	details: `Prints a file of the host; patchbay help config import lists the hosts. Values
of env and headers become variables, except with --secrets.`,
	command: func() command { return new(configExportCmd) },
}

// configExportCmd prints the servers of mcp.json in the format of another host.
type configExportCmd struct {
	Host    string   `arg:"" help:"The host."`
	Names   []string `arg:"" optional:"" help:"Only these servers."`
	Secrets bool     `help:"Print the values of env and headers."`
}

func (*configExportCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	if len(a.words) == 0 {
		return hostNames()
	}
	return a.configServers()
}

func (c *configExportCmd) Run(a *app) error {
	h, err := hostNamed(c.Host)
	if err != nil {
		return err
	}
	path, err := a.configPath()
	if err != nil {
		return err
	}
	if path == "" {
		return usagef("no mcp.json to export").Hint("patchbay config add NAME -- COMMAND")
	}
	doc, err := config.Open(path)
	if err != nil {
		return err
	}
	l := &hosts.Listing{Inputs: doc.Inputs(), OS: runtime.GOOS}
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
			if e, n, err = entry.Variables(e); err != nil {
				return err
			}
			hidden += n
		}
		l.Servers = append(l.Servers, e)
	}
	for _, name := range c.Names {
		if !slices.Contains(names, name) {
			return usagef("%s has no server %q%s", here(path), name, didYouMean(name, names)).Hint(a.beside("config", "list"))
		}
	}
	out, err := h.Write(l)
	if err != nil {
		return err
	}
	a.out.Write(out)
	slices.Sort(l.Notes)
	for _, note := range slices.Compact(l.Notes) {
		a.talk.Note("%s", note)
	}
	if hidden > 0 {
		a.talk.Note("variables replace %s that may be secret; --secrets prints them", quantity(hidden, "value"))
	}
	return nil
}
