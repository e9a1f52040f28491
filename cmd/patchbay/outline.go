package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// readArguments reads the arguments of a tool or prompt from the words of the command line.
func (a *app) readArguments(args []string) ([]arguments.Word, error) {
	if i := slices.IndexFunc(args, isServerURL); i >= 0 && a.Server == "" && !a.dashed {
		url := args[i]
		a.words = slices.DeleteFunc(slices.Clone(a.words), func(w string) bool { return w == url })
		return nil, usagef("%q is not an argument; -s names the server", url).Hint(a.withServer(url))
	}
	return arguments.Read(args, a.stdin, "patchbay help "+a.verb)
}

// outline prints the members that a schema of objects names, or the text none if it names no
// members. If marks is set, required members are marked.
func (a *app) outline(heading, none string, raw []byte, marks bool) {
	rows, more := arguments.Outline(raw, marks)
	if len(rows) == 0 {
		a.print("\n" + none)
		return
	}
	a.print("\n" + heading + ":")
	a.rows(rows)
	if more > 0 {
		a.print(fmt.Sprintf("\n  and %d more; --json shows the whole schema", more))
	}
}

// rows prints arguments, each description wrapped beside its name.
func (a *app) rows(rows []screen.Row) {
	screen.PrintRows(rows, a.tty.width, a.bold, a.print)
	if slices.ContainsFunc(rows, func(r screen.Row) bool { return strings.HasSuffix(r.Name, arguments.RequiredMark) }) {
		a.print("\n  (* required)")
	}
}

// table prints rows in two columns, or none if there are no rows.
func (a *app) table(rows []row, none string) {
	if len(rows) == 0 {
		a.talk.Note("%s", none)
		return
	}
	screen.PrintTable(rows, a.tty.width, a.bold, a.print)
}

// bold formats a heading or a name for standard output.
func (a *app) bold(s string) string { return a.paint(s, "1") }

// printGrid prints a table.
func (a *app) printGrid(g *screen.Grid) {
	g.Print(a.tty.width, a.bold, a.print)
}
