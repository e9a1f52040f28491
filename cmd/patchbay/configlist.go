package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
)

var configListVerb = verb{
	name: "list", summary: "List the servers of mcp.json.",
	examples: []string{"patchbay config list", "patchbay config list --json"},
	details:  `Exit code 1: the file has faults, which are shown with their lines.`,
	command:  func() command { return new(configListCmd) },
}

// configListCmd lists the servers of mcp.json, including those with faults.
type configListCmd struct{}

// listed is a row of the list.
type listed struct {
	Name      string   `json:"name"`
	Transport string   `json:"transport,omitempty"`
	Where     string   `json:"where,omitempty"`
	Enabled   bool     `json:"enabled"`
	Source    string   `json:"source"`
	Faults    []string `json:"faults,omitempty"`
	line      int
}

func (c *configListCmd) Run(a *app) error {
	read, err := a.inspectConfig()
	if err != nil {
		return err
	}
	if read.file == nil {
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		a.talk.Note("no mcp.json was found; looked for %s", strings.Join(config.Places(dir), ", "))
		a.talk.Note("hint: patchbay config add NAME -- COMMAND")
		if a.JSON {
			a.print("[]")
		}
		return nil
	}
	rows := []listed{}
	for _, s := range read.servers {
		rows = append(rows, listed{
			Name: s.Name, Transport: transportOf(&s), Where: where(&s), Enabled: !s.Disabled,
			Source: s.Source, line: lineOf(s.Source),
		})
	}
	for _, p := range read.faults {
		if p.Server == "" {
			continue
		}
		i := slices.IndexFunc(rows, func(r listed) bool { return r.Name == p.Server })
		if i < 0 {
			i = len(rows)
			rows = append(rows, listed{Name: p.Server, Source: fmt.Sprintf("%s:%d", p.Path, p.Line), Enabled: true, line: p.Line})
		}
		rows[i].Faults = append(rows[i].Faults, p.String())
	}
	slices.SortStableFunc(rows, func(a, b listed) int { return cmp.Compare(a.line, b.line) })
	if a.JSON {
		if err := a.printJSON(rows); err != nil {
			return err
		}
	} else {
		a.printListed(rows)
	}
	if len(read.faults) > 0 {
		return read.faults
	}
	return nil
}

func (a *app) printListed(rows []listed) {
	cells := [][]string{}
	for _, r := range rows {
		state := "enabled"
		switch {
		case len(r.Faults) > 0:
			state = quantity(len(r.Faults), "fault")
		case !r.Enabled:
			state = "disabled"
		}
		cells = append(cells, []string{r.Name, cmp.Or(r.Transport, "-"), state, hereLine(r.Source), cmp.Or(r.Where, "-")})
	}
	a.columns("servers", []string{"NAME", "TYPE", "STATE", "FROM", "WHERE"}, cells)
}

// columns prints a table; its last column is cut to the width of the terminal.
func (a *app) columns(what string, head []string, rows [][]string) {
	if len(rows) == 0 {
		a.talk.Note("no %s", what)
		return
	}
	wide := make([]int, len(head))
	for _, r := range append([][]string{head}, rows...) {
		for i := range r {
			wide[i] = max(wide[i], columns(oneLine(r[i])))
		}
	}
	for n, r := range append([][]string{head}, rows...) {
		line := ""
		for i := range r[:len(r)-1] {
			line += pad(oneLine(r[i]), wide[i]) + "  "
		}
		last := oneLine(r[len(r)-1])
		if a.tty.width > 0 && n > 0 {
			last = cut(last, max(10, a.tty.width-columns(line)))
		}
		style := ""
		if n == 0 {
			style = "1"
		}
		a.print(a.paint(strings.TrimRight(line+last, " "), style))
	}
}

func lineOf(source string) int {
	_, line, _ := cutLast(source, ":")
	n, _ := strconv.Atoi(line) // a source without a line sorts first
	return n
}

// transportOf returns the transport of a server, in the words of mcp.json.
func transportOf(s *config.Server) string {
	switch {
	case s.Builtin != "":
		return "builtin"
	case s.Transport == "" && s.URL != "":
		return "http"
	}
	return cmp.Or(s.Transport, "stdio")
}
