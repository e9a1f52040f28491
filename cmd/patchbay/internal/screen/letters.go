package screen

import "unicode/utf8"

// Letters splits a text into units that a cursor moves over in one step: a letter with the
// characters joined to it, such as accents or the parts of an emoji.
func Letters(s string) []string {
	if s == "" {
		return nil
	}
	out := make([]string, 0, utf8.RuneCountInString(s))
	from := 0
	var last rune
	flag := false // the letter is half of a flag
	for i, r := range s {
		half := r >= 0x1f1e6 && r <= 0x1f1ff
		joined := i > 0 && last != '\n' && last != '\t' && r >= 0x300 &&
			(runeColumns(last, r) == 0 || r == 0xfe0f || flag && half)
		if i > 0 && !joined {
			out = append(out, s[from:i])
			from = i
		}
		flag = half && !joined
		last = r
	}
	return append(out, s[from:])
}
