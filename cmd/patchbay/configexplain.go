package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/servers"
)

var configExplainVerb = verb{
	name: "explain", summary: "Show where a server and its values come from.", usage: "NAME",
	examples: []string{"patchbay config explain memory"},
	details: `Shows the places searched for mcp.json, the file found, and the sources of each
value of the server. Values of env and headers are not shown.`,
	command: func() command { return new(configExplainCmd) },
}

// configExplainCmd shows which file a server comes from and why, and its settings.
type configExplainCmd struct {
	Name string `arg:"" help:"The server."`
}

func (*configExplainCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	return append(a.configServers(), builtinNames()...)
}

func (c *configExplainCmd) Run(a *app) error {
	out := entry.Explanation{Name: c.Name}
	search, err := entry.Searched(a.Config, c.Name)
	if err != nil {
		return err
	}
	out.Search = search
	read, err := a.inspectConfig()
	if err != nil {
		return err
	}
	known := slices.Contains(servers.Names(), c.Name)
	for _, s := range read.servers {
		if s.Name == c.Name {
			known = true
			out.Source = s.Source
			out.Values, out.Settings = entry.Values(s), entry.Settings(s)
		}
	}
	faults := append(read.about(c.Name), read.about("")...)
	for _, p := range faults {
		known = true
		out.Faults = append(out.Faults, p.String())
		out.Source = cmp.Or(out.Source, fmt.Sprintf("%s:%d", p.Path, p.Line))
	}
	elsewhere := slices.ContainsFunc(search, func(p entry.Place) bool { return p.Has })
	missing := usagef("no server %q%s", c.Name, didYouMean(c.Name, append(read.names(), servers.Names()...))).Hint(a.beside("config", "list"))
	if !known && !elsewhere {
		return missing
	}
	if a.JSON {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		out.Print(a.print, a.paint)
	}
	switch {
	case len(faults) > 0:
		return faults
	case !known:
		return missing
	}
	return nil
}
