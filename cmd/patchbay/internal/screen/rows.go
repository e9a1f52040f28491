package screen

import "strings"

// Row is a name and its description.
type Row struct{ Name, About string }

// PrintRows prints rows, each description wrapped beside its name. The function bold paints a name,
// and line is called with each line, for a terminal of width columns; 0: lines are not wrapped.
func PrintRows(rows []Row, width int, bold func(string) string, line func(string)) {
	first := 0
	for i := range rows {
		rows[i].Name = Visible(rows[i].Name)
		first = max(first, Columns(rows[i].Name))
	}
	if width > 0 {
		first = min(first, max(20, width*2/5))
	}
	for _, r := range rows {
		room := 0
		if width > 0 {
			room = max(20, width-first-2)
		}
		name := r.Name
		if Columns(name) > first {
			line(bold(name))
			name = ""
		}
		for _, text := range strings.Split(Wrap(OneLine(r.About), room), "\n") {
			line(strings.TrimRight(bold(Pad(name, first))+"  "+text, " "))
			name = ""
		}
	}
}

// leastRoom is the minimum width of a description beside a name, in columns. A narrower one goes on
// a line of its own.
const leastRoom = 24

// PrintTable prints rows in two columns, like PrintRows. A name is never cut; a description is cut
// to the width of the terminal.
func PrintTable(rows []Row, width int, bold func(string) string, line func(string)) {
	// One very long name must not move all descriptions to the right.
	first, limit := 0, 40
	if width > 0 {
		limit = max(20, width*2/5)
	}
	for i := range rows {
		rows[i].Name, rows[i].About = OneLine(rows[i].Name), OneLine(rows[i].About)
		if wide := Columns(rows[i].Name); wide <= limit {
			first = max(first, wide)
		}
	}
	for _, r := range rows {
		used := max(first, Columns(r.Name)) + 2
		name := bold(r.Name)
		switch room := width - used; {
		case r.About == "":
			line(name)
		case width == 0:
			line(name + strings.Repeat(" ", used-Columns(r.Name)) + r.About)
		case room < leastRoom:
			const indent = 4
			line(name)
			line(strings.Repeat(" ", indent) + Cut(r.About, max(1, width-indent)))
		default:
			line(name + strings.Repeat(" ", used-Columns(r.Name)) + Cut(r.About, room))
		}
	}
}
