package fetch

import "strings"

// table keeps its rows until it ends, because only then it is known whether it is a table of data.
// Many pages use tables for layout; those become blocks.
type table struct {
	rows   [][]string
	inCell bool
	size   int // bytes of the cells
}

// startCell handles the start tag of a row or a cell.
func (r *renderer) startCell(name string) {
	if r.table == nil {
		r.block()
		return
	}
	r.finishCell()
	if name == "tr" {
		r.table.rows = append(r.table.rows, nil)
		r.table.size += spanCost
		return
	}
	if len(r.table.rows) == 0 { // a cell without a row
		r.table.rows = append(r.table.rows, nil)
	}
	r.table.inCell = true
}

// endCell handles the end tag of a row, a cell or a table.
func (r *renderer) endCell(name string) {
	if r.table == nil {
		r.block()
		return
	}
	r.finishCell()
	if name == "table" {
		r.endTable()
	}
}

// finishCell stores the current cell. Text between cells, such as a caption, becomes a
// paragraph before the table.
func (r *renderer) finishCell() {
	t := r.table
	if !t.inCell {
		r.block()
		return
	}
	t.inCell = false
	text := strings.Join(strings.Fields(r.line.flush(r.plain, true)), " ")
	r.line.reset()
	last := len(t.rows) - 1
	t.rows[last] = append(t.rows[last], text)
	t.size += spanCost + len(text)
}

// spill stops treating a table as data: its cells so far become paragraphs, and later ones
// blocks.
func (r *renderer) spill() {
	t := r.table
	if t == nil {
		return
	}
	r.table = nil
	for _, row := range t.rows {
		for _, cell := range row {
			if cell != "" {
				r.para(cell)
			}
		}
	}
	r.block() // the current cell
}

func (r *renderer) endTable() {
	t := r.table
	widest, lines := 0, make([]string, 0, len(t.rows)+1)
	for _, row := range t.rows {
		widest = max(widest, len(row))
	}
	if widest < 2 {
		r.spill()
		return
	}
	for _, row := range t.rows {
		switch {
		case strings.Join(row, "") == "":
			continue
		case r.plain:
			lines = append(lines, strings.Join(row, "\t"))
			continue
		}
		lines = append(lines, "| "+strings.Join(row, " | ")+" |")
		if len(lines) == 1 {
			lines = append(lines, "|"+strings.Repeat(" --- |", len(row)))
		}
	}
	r.table = nil
	if len(lines) > 0 {
		r.para(strings.Join(lines, "\n"))
	}
}
