package screen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Characters that a terminal would obey, or not show at all, are replaced where people read text
// from a server, because they may hide words that a model reads, or show others.
//
//	control characters     their pictures: ␛ ␇ ␀
//	direction (bidi)       their names: ⟨U+202E⟩
//	invisible letters      their names, unless they join the characters around them, as in emoji
//	tags, selectors        their names, unless they directly follow the character they select

// Visible replaces all of these. Newlines and tabs stay.
func Visible(s string) string {
	if plainASCII(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var out strings.Builder
	out.Grow(len(s))
	var last rune // the rune before r, unreplaced
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r < 0x20:
			out.WriteRune('␀' + r) // the pictures of control characters begin here
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

// plainASCII reports whether there is nothing to replace.
func plainASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// hidden reports whether a character is invisible or changes how others are shown.
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

// joins reports whether a hidden character has its proper effect after another one.
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
