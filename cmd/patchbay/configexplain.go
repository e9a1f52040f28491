package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/servers"
	"github.com/patchbay-dev/patchbay/trace"
)

var configExplainVerb = verb{
	name: "explain", summary: "Show the origin of a server and of its values.", usage: "NAME",
	examples: []string{"patchbay config explain memory"},
	details: `Shows the places searched for mcp.json, the file that was found, and the sources
of each value of the server. Values of env and headers are not shown.`,
	command: func() command { return new(configExplainCmd) },
}

// configExplainCmd shows which file a server is from and why, and what it is made of.
type configExplainCmd struct {
	Name string `arg:"" help:"The server."`
}

func (*configExplainCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	return append(a.configServers(), builtinNames()...)
}

// explained is what is to be told of a server.
type explained struct {
	Name     string           `json:"name"`
	Source   string           `json:"source,omitempty"`
	Search   []explainedPlace `json:"search"`
	Values   []explainedValue `json:"values,omitempty"`
	Settings []explainedValue `json:"settings,omitempty"`
	Faults   []string         `json:"faults,omitempty"`
}

type explainedPlace struct {
	Path string `json:"path"`
	Used bool   `json:"used"`
	Why  string `json:"why"`
	Has  bool   `json:"has"` // it has a server of the name
}

type explainedValue struct {
	Name   string   `json:"name"`
	Text   string   `json:"text"` // as it may be shown
	From   []string `json:"from,omitempty"`
	Source string   `json:"source,omitempty"`
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
			out.Values, out.Settings = valuesOf(s), settingsOf(s)
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
		raw, err := jsonx.Marshal(out)
		if err != nil {
			return err
		}
		a.print(string(raw))
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

// searched tells of each place of mcp.json what is there, and why it is used or not.
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
			p.Why = "not there"
		case err != nil:
			p.Why = "cannot be looked at"
		case !info.Mode().IsRegular():
			p.Why = "not a file"
		case winner == "":
			winner = p.Path
			p.Used, p.Why = true, "used: the first that is there"
		default:
			p.Why = "not read: " + winner + " goes before it"
			if file, faults, err := config.Inspect(path, nil); err == nil {
				p.Has = slices.ContainsFunc(file.Servers, func(s config.Server) bool { return s.Name == name }) ||
					slices.ContainsFunc(faults, func(p config.Problem) bool { return p.Server == name })
				if p.Has {
					p.Why += fmt.Sprintf("; it has a server %q", name)
				}
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// valuesOf lists the values of a server, without those that may be secrets.
func valuesOf(s config.Server) []explainedValue {
	var out []explainedValue
	before := "" // the argument before
	for _, v := range s.Values() {
		e := explainedValue{Name: v.Member, Text: v.Text(), From: v.From(), Source: hereLine(v.Source)}
		switch v.Member {
		case "args":
			e.Name += "[" + v.Name + "]"
			e.Text = secrets.ShownArg(before, e.Text)
			before = v.Written
		case "env", "headers":
			e.Name += " " + v.Name
			e.Text = trace.Redacted
			if text := v.Text(); text == "" {
				e.Text = `""`
			}
		case "url":
			e.Text = secrets.ShownURL(v.Text())
		}
		if secretVariable(v.Written) {
			e.Text = v.Written
			if v.Member == "url" {
				e.Text = secrets.ShownURL(v.Written)
			}
		}
		out = append(out, e)
	}
	return out
}

var variableRef = regexp.MustCompile(`\$\{(?:env:)?([^}:]+)`)

// secretVariable reports whether a value is made of a variable that is named like a
// secret.
func secretVariable(written string) bool {
	for _, m := range variableRef.FindAllStringSubmatch(written, -1) {
		if secrets.Name(m[1]) {
			return true
		}
	}
	return false
}

// settingsOf lists what Patchbay alone reads of a server.
func settingsOf(s config.Server) []explainedValue {
	var out []explainedValue
	add := func(name, text string) {
		if text != "" {
			out = append(out, explainedValue{Name: name, Text: text})
		}
	}
	long := func(d time.Duration) string {
		switch {
		case d < 0:
			return "never"
		case d == 0:
			return ""
		}
		return d.String()
	}
	if s.Disabled {
		add("disabled", "true")
	}
	add("share", s.Share)
	if s.Clients > 0 {
		add("clients", strconv.Itoa(s.Clients))
	}
	add("queue", long(s.Queue))
	add("idle", long(s.Idle))
	add("startTimeout", long(s.StartTimeout))
	add("callTimeout", long(s.CallTimeout))
	add("callLimit", long(s.CallLimit))
	add("ca", s.CA)
	add("cert", s.Cert)
	add("key", s.Key)
	if s.InheritEnv {
		add("inheritEnv", "true")
	}
	if s.Trusted {
		add("trusted", "true")
	}
	if s.Required {
		add("required", "true")
	}
	add("group", s.Group)
	add("cache", long(s.Cache))
	if s.EnabledTools != nil {
		add("tools enabled", orName(strings.Join(s.EnabledTools, ", "), "none"))
	}
	add("tools disabled", strings.Join(s.DisabledTools, ", "))
	return out
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

// sameFile compares the paths of two sources.
func sameFile(a, b string) bool {
	x, _, _ := cutLast(hereLine(a), ":")
	y, _, _ := cutLast(hereLine(b), ":")
	return x == y
}
