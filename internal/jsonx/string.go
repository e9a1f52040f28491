package jsonx

import (
	"bytes"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/buffer"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string, quotes included.
//
// Only control characters, the quote and the backslash are escaped; U+2028, U+2029 and the
// characters of HTML are not. Each byte that is not valid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	if len(s) > longText {
		dst, s = appendLong(dst, s)
	}
	start, i := 0, 0 // s[start:i] is plain and not written yet
	for i < len(s) {
		for i+8 <= len(s) {
			w := loadString(s, i)
			if m := notPlain(w); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if i == len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			// Stay here while the text is not ASCII: a run of, say, Greek
			// would find nothing plain in any word.
			for i < len(s) && s[i] >= utf8.RuneSelf {
				r, n := utf8.DecodeRuneInString(s[i:])
				if r == utf8.RuneError && n == 1 {
					dst = append(dst, s[start:i]...)
					dst = append(dst, "\uFFFD"...)
					start = i + 1
				}
				i += n
			}
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	if e := short[c]; e != 0 {
		return append(dst, '\\', e)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// Unquote returns the text of b, one JSON string in quotes without white space around it. The
// error is a [*SyntaxError].
func Unquote(b []byte) (string, error) {
	end, escaped, err := quoted(b)
	if err != nil {
		return "", err
	}
	if !escaped {
		return string(b[1:end]), nil
	}
	text, _ := Unescaped(b, 0)
	return text, nil
}

// ShortText is the length in bytes up to which [Unescaped] allocates nothing besides the text.
const ShortText = 120

// Unescaped returns the text of the valid string whose opening quote is b[i], and the position
// after its closing quote.
func Unescaped(b []byte, i int) (text string, next int) {
	body := b[i+1:]
	if n := bytes.IndexByte(body, '"'); n >= 0 && bytes.IndexByte(body[:n], '\\') < 0 {
		return string(body[:n]), i + n + 2
	}
	if len(b)-i <= ShortText {
		var short [ShortText + 8]byte // on the stack
		out, next := unescapeTo(short[:0], b, i)
		return string(out), next
	}
	lent := buffer.Get()
	defer buffer.Put(lent)
	*lent, next = unescapeTo(buffer.Grow(*lent, len(b)-i+8), b, i)
	return string(*lent), next
}

// AppendUnquote appends the text of b, one JSON string with its quotes and nothing around it. The
// error is a [*SyntaxError], and dst is then returned unchanged.
func AppendUnquote(dst, b []byte) ([]byte, error) {
	end, escaped, err := quoted(b)
	if err != nil {
		return dst, err
	}
	if !escaped {
		return append(dst, b[1:end]...), nil
	}
	return appendUnescaped(dst, b[1:end]), nil
}

// quoted checks that b is exactly one JSON string and returns the position of the closing quote.
func quoted(b []byte) (end int, escaped bool, err error) {
	if len(b) == 0 || b[0] != '"' {
		return 0, false, &SyntaxError{0, "want a string"}
	}
	next, escaped, fault := scanString(b, 0)
	if fault != nil {
		return 0, false, fault
	}
	if next != len(b) {
		return 0, false, &SyntaxError{next, "bytes after the string"}
	}
	return next - 1, escaped, nil
}

// scanString checks the string whose opening quote is b[i] and returns the position after its
// closing quote.
func scanString(b []byte, i int) (next int, escaped bool, err *SyntaxError) {
	start := i
	i++
	// Most strings are plain ASCII.
	for i+8 <= len(b) {
		w := load(b, i)
		if m := notPlain(w); m != 0 {
			if i += bits.TrailingZeros64(m) / 8; b[i] == '"' {
				return i + 1, false, nil
			}
			break
		}
		i += 8
	}
	return scanStringFrom(b, start, i)
}

// scanStringFrom continues at b[i]; the string is plain before it.
func scanStringFrom(b []byte, start, i int) (next int, escaped bool, err *SyntaxError) {
	var seen uint64 // all words or-ed; a high bit means a byte over 0x7f
	for {
		for i+8 <= len(b) {
			w := load(b, i)
			if notPlain(w) != 0 {
				if m := special(w); m != 0 {
					seen |= w & (m&-m - 1) // the bytes before the special one
					i += bits.TrailingZeros64(m) / 8
					break
				}
				seen |= w
			}
			i += 8
		}
		if i >= len(b) {
			return 0, false, &SyntaxError{len(b), "unexpected end inside a string"}
		}
		c := b[i]
		switch {
		case c == '"':
			if seen&high != 0 {
				if bad := invalidUTF8(b[start:i]); bad >= 0 {
					return 0, false, &SyntaxError{start + bad, "invalid UTF-8"}
				}
			}
			return i + 1, escaped, nil
		case c == '\\':
			escaped = true
			if i+1 < len(b) && simple[b[i+1]] != 0 {
				i += 2
				continue
			}
			n, err := scanEscape(b, i)
			if err != nil {
				return 0, false, err
			}
			i += n
		case c < ' ':
			return 0, false, &SyntaxError{i, "control character inside a string"}
		default:
			seen |= uint64(c)
			i++
		}
	}
}

// scanEscape checks the escape sequence at b[i], a backslash, and returns its
// length. A surrogate pair is one sequence.
func scanEscape(b []byte, i int) (n int, err *SyntaxError) {
	if i+1 >= len(b) {
		return 0, &SyntaxError{len(b), "unexpected end inside a string"}
	}
	if b[i+1] == 'u' {
		r, ok := hex4(b, i+2)
		if !ok {
			return 0, &SyntaxError{i, `\u without four hexadecimal digits`}
		}
		if !utf16.IsSurrogate(r) {
			return 6, nil
		}
		if i+7 < len(b) && b[i+6] == '\\' && b[i+7] == 'u' {
			if r2, ok := hex4(b, i+8); ok && utf16.DecodeRune(r, r2) != utf8.RuneError {
				return 12, nil
			}
		}
		return 0, &SyntaxError{i, "escaped surrogate without its partner"}
	}
	return 0, &SyntaxError{i, "unknown escape sequence"}
}

// hex4 reads the four hexadecimal digits at b[i].
func hex4(b []byte, i int) (r rune, ok bool) {
	if i+4 > len(b) {
		return 0, false
	}
	for _, c := range b[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendUnescaped appends the text of body, the inside of a string. For an invalid body the
// result is unspecified, but it does not panic.
func appendUnescaped(dst, body []byte) []byte {
	for i := 0; i < len(body); {
		j := bytes.IndexByte(body[i:], '\\')
		if j < 0 {
			return append(dst, body[i:]...)
		}
		j += i
		dst = append(dst, body[i:j]...)
		if j+1 >= len(body) {
			break
		}
		dst, i = unescape(dst, body, j)
	}
	return dst
}

// unescape appends the text of the escape sequence at body[i] and returns the position after it.
func unescape(dst, body []byte, i int) (out []byte, next int) {
	next = i + 2
	switch c := body[i+1]; {
	case simple[c] != 0:
		dst = append(dst, simple[c])
	case c == 'u':
		r, _ := hex4(body, next)
		next = min(next+4, len(body))
		if utf16.IsSurrogate(r) {
			r2, _ := hex4(body, next+2)
			r = utf16.DecodeRune(r, r2)
			next = min(next+6, len(body))
		}
		dst = utf8.AppendRune(dst, r)
	default:
		dst = append(dst, c)
	}
	return dst, next
}

// invalidUTF8 returns the position of the first byte of b that is not UTF-8, or -1.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
