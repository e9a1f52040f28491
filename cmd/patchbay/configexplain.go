package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/config"
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

// explained is the explanation of a server.
type explained struct {
	Name     string           `json:"name"`
	Source   string           `json:"source,omitempty"`
	Search   []explainedPlace `json:"search"`
	Values   []entry.Value    `json:"values,omitempty"`
	Settings []entry.Value    `json:"settings,omitempty"`
	Faults   []string         `json:"faults,omitempty"`
}

type explainedPlace struct {
	Path string `json:"path"`
	Used bool   `json:"used"`
	Why  string `json:"why"`
	Has  bool   `json:"has"` // the file has a server with the name
}

func (c *configExplainCmd) Run(a *app) error {
	out := explained{Name: c.Name}
	search, err := a.searched(c.Name)
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
	elsewhere := slices.ContainsFunc(search, func(p explainedPlace) bool { return p.Has })
	missing := usagef("no server %q%s", c.Name, didYouMean(c.Name, append(read.names(), servers.Names()...))).hint(a.beside("config", "list"))
	if !known && !elsewhere {
		return missing
	}
	if a.JSON {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		a.printExplained(&out)
	}
	switch {
	case len(faults) > 0:
		return faults
	case !known:
		return missing
	}
	return nil
}

// searched lists each place of mcp.json, with what is there and why it is used or not.
func (a *app) searched(name string) ([]explainedPlace, error) {
	if a.Config != "" {
		return []explainedPlace{{Path: a.Config, Used: true, Why: "used: --config names it"}}, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	winner := ""
	var out []explainedPlace
	for _, path := range config.Places(dir) {
		p := explainedPlace{Path: here(path)}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			p.Why = "not found"
		case err != nil:
			p.Why = "unreadable"
		case !info.Mode().IsRegular():
			p.Why = "not a file"
		case winner == "":
			winner = p.Path
			p.Used, p.Why = true, "used: the first found"
		default:
			p.Why = "not read: " + winner + " comes first"
			if file, faults, err := config.Inspect(path, nil); err == nil {
				p.Has = slices.ContainsFunc(file.Servers, func(s config.Server) bool { return s.Name == name }) ||
					slices.ContainsFunc(faults, func(p config.Problem) bool { return p.Server == name })
				if p.Has {
					p.Why += fmt.Sprintf("; it has a server %q too", name)
				}
			}
		}
		out = append(out, p)
	}
	return out, nil
}

func (a *app) printExplained(e *explained) {
	from := hereLine(e.Source)
	if from == "" && slices.Contains(servers.Names(), e.Name) {
		from = "built in"
	}
	a.print(a.paint(oneLine(e.Name), "1") + "  " + cmp.Or(from, "nowhere"))
	a.print("\n" + a.paint("Search order", "1"))
	wide := 0
	for _, p := range e.Search {
		wide = max(wide, columns(p.Path))
	}
	for _, p := range e.Search {
		mark := "  "
		if p.Used {
			mark = "* "
		}
		a.print(mark + pad(oneLine(p.Path), wide) + "  " + oneLine(p.Why))
	}
	if len(e.Values) > 0 {
		a.print("\n" + a.paint("Values", "1"))
	}
	lines := slices.Concat(e.Values, e.Settings)
	wide = 0
	texts := 0
	for _, v := range lines {
		wide, texts = max(wide, columns(oneLine(v.Name))), max(texts, min(40, columns(oneLine(v.Text))))
	}
	for i, v := range lines {
		if i == len(e.Values) {
			a.print("\n" + a.paint("Settings", "1"))
		}
		line := "  " + pad(oneLine(v.Name), wide) + "  " + pad(oneLine(v.Text), texts)
		from := v.From
		if v.Source != "" && len(from) == 0 && !sameFile(v.Source, e.Source) {
			from = []string{v.Source}
		}
		if len(from) > 0 {
			line += "  from " + oneLine(strings.Join(from, ", "))
		}
		a.print(strings.TrimRight(line, " "))
	}
}

// sameFile reports whether two sources, "path:line", have the same path.
func sameFile(a, b string) bool {
	x, _, _ := cutLast(hereLine(a), ":")
	y, _, _ := cutLast(hereLine(b), ":")
	return x == y
}
