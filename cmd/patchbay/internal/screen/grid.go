package screen

import "strings"

// Grid is a table for people, with lines of text below a row. Its last column may be long: text
// that does not fit the width of the terminal goes below the row.
type Grid struct {
	Right []bool // columns aligned to the right
	rows  [][]string
	under map[int][]string
}

// Add adds a row; the first is the heading.
func (g *Grid) Add(cells ...string) {
	for i, cell := range cells {
		cells[i] = OneLine(cell)
	}
	g.rows = append(g.rows, cells)
}

// Below adds lines below the last row.
func (g *Grid) Below(lines ...string) {
	if g.under == nil {
		g.under = map[int][]string{}
	}
	g.under[len(g.rows)-1] = lines
}

// Print calls line with each line of the table, for a terminal of width columns; 0: lines are not
// cut. The function bold paints the heading.
func (g *Grid) Print(width int, bold func(string) string, line func(string)) {
	last := len(g.rows[0]) - 1
	wide := make([]int, last)
	for _, row := range g.rows {
		for i, cell := range row[:last] {
			wide[i] = max(wide[i], Columns(cell))
		}
	}
	for n, row := range g.rows {
		var cells strings.Builder
		for i, cell := range row[:last] {
			if i < len(g.Right) && g.Right[i] {
				cells.WriteString(strings.Repeat(" ", wide[i]-Columns(cell)) + cell + "  ")
			} else {
				cells.WriteString(Pad(cell, wide[i]) + "  ")
			}
		}
		head, about := strings.TrimRight(cells.String(), " "), row[last]
		fits := width == 0 || Columns(cells.String())+Columns(about) <= width
		if fits {
			head = strings.TrimRight(cells.String()+about, " ")
		}
		if n == 0 {
			head = bold(head)
		}
		line(head)
		if !fits {
			for text := range strings.SplitSeq(Wrap(about, width-2), "\n") {
				line("  " + Cut(text, width-2))
			}
		}
		for _, said := range g.under[n] {
			line(Cut("  | "+OneLine(said), width))
		}
	}
}
