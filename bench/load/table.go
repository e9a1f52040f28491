package load

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// PrintTable writes rows as a table: the first columns, left of them, begin at the left, all others
// end at the right.
func PrintTable(w io.Writer, left int, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, cells := range rows {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, cells := range rows {
		var b strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i < left {
				b.WriteString(c + pad + "  ")
			} else {
				b.WriteString(pad + c + "  ")
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// Cell returns the median of v and its spread, "-" if v is empty.
func Cell(v []float64) string {
	if len(v) == 0 {
		return "-"
	}
	m := Median(v)
	if len(v) == 1 {
		return number(m, m)
	}
	return number(m, m) + " ±" + number(Spread(v), m)
}

// number returns v with as many decimals as a number of the size of like needs for three digits.
func number(v, like float64) string {
	decimals := 0
	for size := math.Abs(like); size < 100 && decimals < 2; size *= 10 {
		decimals++
	}
	return fmt.Sprintf("%.*f", decimals, v)
}
