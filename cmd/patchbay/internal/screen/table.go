package screen

import "strings"

// maxCells bounds the columns of a table; no terminal is wide enough for more.
const maxCells = 64

// table renders a table after its head: columns as wide as they need to be, with wrapped texts if
// the terminal is narrower.
func (m *markdownText) table(head string) {
	m.next() // the line of dashes
	rows := [][]string{cellsOf(head)}
	for len(m.lines) > 0 && strings.Contains(m.lines[0], "|") {
		rows = append(rows, cellsOf(m.next()))
	}
	var wide []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], Columns(plainSpans(m.inline(c, ""))))
		}
	}
	m.fit(wide)
	for n, r := range rows {
		style := ""
		if n == 0 {
			style = "1"
		}
		m.row(r, wide, style)
		if n == 0 {
			var dashes []string
			for _, w := range wide {
				dashes = append(dashes, strings.Repeat("─", w))
			}
			m.print(Paint(strings.Join(dashes, "  "), "2", m.color))
		}
	}
}

// fit narrows the widest columns until all fit.
func (m *markdownText) fit(wide []int) {
	const least = 6
	if m.width == 0 {
		return
	}
	for i := range wide {
		wide[i] = min(wide[i], m.width)
	}
	for {
		sum, widest := 2*(len(wide)-1), 0
		for i, w := range wide {
			sum += w
			if w > wide[widest] {
				widest = i
			}
		}
		if sum <= m.width || wide[widest] <= least {
			return
		}
		wide[widest]--
	}
}

// row prints one row, over several lines if its texts are longer than their columns.
func (m *markdownText) row(cells []string, wide []int, style string) {
	var texts [][]string // the lines of each cell
	most := 0
	for i, c := range cells {
		lines := m.wrap(broken(m.inline(c, style), wide[i]), wide[i])
		texts = append(texts, lines)
		most = max(most, len(lines))
	}
	for n := range most {
		var parts []string
		for i := range texts {
			text := ""
			if n < len(texts[i]) {
				text = texts[i][n]
			}
			parts = append(parts, text+strings.Repeat(" ", max(0, wide[i]-Columns(Unpainted(text)))))
		}
		m.print(strings.Join(parts, "  "))
	}
}

// broken inserts spaces into words that are wider than a column.
func broken(spans []span, width int) []span {
	out := make([]span, len(spans))
	for n, s := range spans {
		var text strings.Builder
		used := 0
		var last rune
		for _, r := range s.text {
			w := runeColumns(last, r)
			switch {
			case r == ' ':
				used = 0
			case used+w > width:
				text.WriteByte(' ')
				used = w
			default:
				used += w
			}
			text.WriteRune(r)
			last = r
		}
		out[n] = span{text.String(), s.style}
	}
	return out
}

func plainSpans(spans []span) string {
	var out strings.Builder
	for _, s := range spans {
		out.WriteString(s.text)
	}
	return out.String()
}

// cellsOf splits a row of a table. A bar after a backslash, or in code, is text.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	if !strings.HasSuffix(line, `\|`) {
		line = strings.TrimSuffix(line, "|")
	}
	var cells []string
	var cell strings.Builder
	code := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
		case c == '|' && !code && len(cells) < maxCells-1:
			cells = append(cells, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			if c == '`' {
				code = !code
			}
			cell.WriteByte(c)
		}
	}
	return append(cells, strings.TrimSpace(cell.String()))
}
