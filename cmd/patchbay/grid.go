package main

import "strings"

// grid is a table for people, with lines of text below a row. Its last column is the
// one that may be long: what does not fit the width of the terminal goes below the row.
type grid struct {
	right []bool // columns to the right
	rows  [][]string
	under map[int][]string
}

func (g *grid) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = oneLine(cell)
	}
	g.rows = append(g.rows, cells)
}

// below puts lines below the last row.
func (g *grid) below(lines ...string) {
	if g.under == nil {
		g.under = map[int][]string{}
	}
	g.under[len(g.rows)-1] = lines
}

func (g *grid) print(a *app) {
	last := len(g.rows[0]) - 1
	wide := make([]int, last)
	for _, row := range g.rows {
		for i, cell := range row[:last] {
			wide[i] = max(wide[i], columns(cell))
		}
	}
	width := a.tty.width
	for n, row := range g.rows {
		var line strings.Builder
		for i, cell := range row[:last] {
			if i < len(g.right) && g.right[i] {
				line.WriteString(strings.Repeat(" ", wide[i]-columns(cell)) + cell + "  ")
			} else {
				line.WriteString(pad(cell, wide[i]) + "  ")
			}
		}
		head, about := strings.TrimRight(line.String(), " "), row[last]
		fits := width == 0 || columns(line.String())+columns(about) <= width
		if fits {
			head = strings.TrimRight(line.String()+about, " ")
		}
		if n == 0 {
			head = a.paint(head, "1")
		}
		a.print(head)
		if !fits {
			for text := range strings.SplitSeq(wrap(about, width-2), "\n") {
				a.print("  " + cut(text, width-2))
			}
		}
		for _, said := range g.under[n] {
			a.print(cut("  | "+oneLine(said), width))
		}
	}
}
