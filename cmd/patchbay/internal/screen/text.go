package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// OneLine returns a text as one line, made visible.
func OneLine(s string) string { return Visible(strings.Join(strings.Fields(s), " ")) }

// Columns returns the width of a text on a terminal.
func Columns(s string) int {
	n := 0
	var last rune
	for _, r := range s {
		n += runeColumns(last, r)
		last = r
	}
	return n
}

// runeColumns returns by how much a character widens a text that ends with last: a character that
// is joined to an emoji adds nothing, and the emoji variation selector makes the character before
// it wide.
func runeColumns(last, r rune) int {
	switch {
	case r < 0x300:
		return 1
	case r == 0xfe0f && last >= 0x300:
		return 2 - runeColumns(0, last)
	case last == 0x200d && r > 0x2000, r >= 0x1f3fb && r <= 0x1f3ff && last > 0x2000:
		return 0
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut shortens a line to at most most columns; 0 leaves it.
func Cut(s string, most int) string {
	if most <= 0 || Columns(s) <= most {
		return s
	}
	n := 1 // for the ellipsis
	var last rune
	for i, r := range s {
		if n += runeColumns(last, r); n > most {
			return strings.TrimRight(s[:i], " ") + "…"
		}
		last = r
	}
	return s
}

func Pad(s string, to int) string { return s + strings.Repeat(" ", max(0, to-Columns(s))) }

// Paint colours text with an ANSI style such as "1" or "31".
func Paint(s, style string, on bool) string {
	if !on || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// Plain returns a JSON value as people read it: strings without their quotes.
func Plain(raw json.RawMessage) string {
	if s, err := jsonx.Unquote(raw); err == nil {
		return s
	}
	return string(jsonx.Compact(nil, raw))
}

// Indented returns a JSON value over several lines, with its numbers and names unchanged.
func Indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// Bytes returns a number of bytes in words, such as "1.5 kB".
func Bytes(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
}

// Wrap wraps text into lines of at most most columns; 0 leaves it.
func Wrap(s string, most int) string {
	if most <= 0 {
		return s
	}
	var out strings.Builder
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		used := 0
		for j, word := range strings.Split(line, " ") {
			n := Columns(word)
			if j > 0 {
				if used+1+n > most {
					out.WriteByte('\n')
					used = 0
				} else {
					out.WriteByte(' ')
					used++
				}
			}
			out.WriteString(word)
			used += n
		}
	}
	return out.String()
}
