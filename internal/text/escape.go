package text

import "unicode/utf8"

// Obeyed reports whether a terminal obeys a character or hides text by it: a control character other
// than a tab or a line break, a change of direction, or a separator of lines or paragraphs.
func Obeyed(r rune) bool {
	switch {
	case r < ' ':
		return r != '\t' && r != '\n'
	case r < 0x7f:
		return false
	case r <= 0x9f: // DEL and C1
		return true
	}
	return r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Escape appends s with \uXXXX for each [Obeyed] character, as in a string of JSON. Valid JSON stays
// valid and keeps its value.
func Escape(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	start := 0 // s[start:i] is not written yet
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c < 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if Obeyed(r) {
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', 'u', digits[r>>12], digits[r>>8&15], digits[r>>4&15], digits[r&15])
			start = i + n
		}
		i += n
	}
	return append(dst, s[start:]...)
}

// Plain reports whether s has only ASCII characters that a terminal shows, so that [Escape] would change
// nothing.
func Plain(s []byte) bool {
	for _, c := range s {
		if c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}
