package screen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a terminal would obey, or not show at all, is replaced where people read text of a
// server: it may hide words from them that a model reads, or show others.
//
//	control characters     their pictures: ␛ ␇ ␀
//	direction (bidi)       their names: ⟨U+202E⟩
//	invisible letters      their names, unless they join what is around them, as in emoji
//	tags, selectors        their names, unless the first behind what they select

// Visible makes all of that visible. Newlines and tabs stay.
func Visible(s string) string {
	if plainASCII(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var out strings.Builder
	out.Grow(len(s))
	var last rune // before r, as it was
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r < 0x20:
			out.WriteRune('␀' + r) // the pictures of control characters begin there
		case r == 0x7f:
			out.WriteRune('␡')
		case r == utf8.RuneError, hidden(r) && !joins(last, r):
			if r == utf8.RuneError {
				out.WriteRune(r)
				break
			}
			fmt.Fprintf(&out, "⟨U+%04X⟩", r)
		default:
			out.WriteRune(r)
		}
		last = r
	}
	return out.String()
}

// plainASCII tells that there is nothing to make visible.
func plainASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// hidden tells whether a character shows nothing, or changes how others show.
func hidden(r rune) bool {
	switch {
	case r < 0x80:
		return false
	case r < 0xa0, r == 0xad: // C1 control characters, soft hyphen
		return true
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0: // Hangul fillers
		return true
	case r == 0x2028, r == 0x2029: // separators of lines and paragraphs
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff: // selectors, tags
		return true
	case r >= 0x600 && r <= 0x605, r == 0x6dd, r == 0x70f, r == 0x8e2: // Arabic signs that show
		return false
	}
	return unicode.Is(unicode.Cf, r)
}

// joins tells whether a hidden character does its proper work behind another one.
func joins(last, r rune) bool {
	shown := last >= 0xa0 && !hidden(last)
	switch {
	case r == 0x200c || r == 0x200d: // the non-joiner and the joiner of letters and emoji
		return shown && !unicode.IsSpace(last) || last == 0xfe0f
	case r == 0xfe0e || r == 0xfe0f: // text or picture: ❤️, and the keycaps 1️⃣
		return shown || last >= '0' && last <= '9' || last == '#' || last == '*'
	case r >= 0xe0100 && r <= 0xe01ef: // forms of an ideograph
		return unicode.Is(unicode.Han, last)
	}
	return false
}
