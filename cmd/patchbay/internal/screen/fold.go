package screen

import "strings"

// Fold breaks a painted line after width columns, inside words if need be. It is for text without
// words, or with words that are too long. A style continues on the next line. If width is 0, the
// line stays whole.
func Fold(line string, width int) []string {
	if width <= 0 || Columns(Unpainted(line)) <= width {
		return []string{line}
	}
	var lines []string
	var out strings.Builder
	style, used := "", 0
	var last rune
	for rest := line; rest != ""; {
		if at := sgr().FindStringIndex(rest); at != nil && at[0] == 0 {
			if style = rest[:at[1]]; style == reset {
				style = ""
			}
			out.WriteString(rest[:at[1]])
			rest = rest[at[1]:]
			continue
		}
		n := next(rest)
		for _, r := range rest[:n] {
			w := runeColumns(last, r)
			if used > 0 && used+w > width {
				if style != "" {
					out.WriteString(reset)
				}
				lines = append(lines, out.String())
				out.Reset()
				out.WriteString(style)
				used = 0
			}
			out.WriteRune(r)
			used += w
			last = r
		}
		rest = rest[n:]
	}
	return append(lines, out.String())
}

const reset = "\x1b[0m"

// next returns the length of the text before the next style.
func next(s string) int {
	if at := sgr().FindStringIndex(s); at != nil {
		return at[0]
	}
	return len(s)
}
