package jsonx

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/buffer"
)

// Long texts have escapes here and there: line breaks, most of all. Between them they are
// taken word by word, and a word is written before it is known how much of it counts, which
// beats finding the end of each stretch and copying it by half.

// longText is the length from which that is worth its preparation.
const longText = 256

// appendLong appends s as AppendString does, up to the last few bytes, which it returns.
func appendLong(dst []byte, s string) (out []byte, rest string) {
	const spare = 16 // a word, and the longest escape
	dst = buffer.Grow(dst, len(s)+len(s)/16+spare)
	n, i := len(dst), 0
	dst = dst[:cap(dst)]
	for i+8 <= len(s) {
		if n+spare > len(dst) {
			dst = buffer.Grow(dst[:n], len(s)-i+len(s)/8+spare)
			dst = dst[:cap(dst)]
		}
		w := loadString(s, i)
		binary.LittleEndian.PutUint64(dst[n:], w)
		m := notPlain(w)
		if m == 0 {
			i, n = i+8, n+8
			continue
		}
		plain := bits.TrailingZeros64(m) / 8
		i, n = i+plain, n+plain
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			end := i
			for end < len(s) && s[end] >= utf8.RuneSelf {
				r, size := utf8.DecodeRuneInString(s[end:])
				if r == utf8.RuneError && size == 1 {
					break
				}
				end += size
			}
			if end == i {
				n += copy(dst[n:], "\uFFFD")
				i++
				break
			}
			if n+end-i+spare > len(dst) {
				dst = buffer.Grow(dst[:n], len(s)-i+len(s)/8+spare)
				dst = dst[:cap(dst)]
			}
			n += copy(dst[n:], s[i:end])
			i = end
		case c < ' ' || c == '"' || c == '\\':
			n = len(appendEscape(dst[:n], c))
			i++
		default: // written with its word
			i, n = i+1, n+1
		}
	}
	return dst[:n], s[i:]
}

// unescapeLong appends the text of body, up to the last few bytes, which it returns. There
// is room for len(body)+8 bytes.
func unescapeLong(dst, body []byte) (out, rest []byte) {
	n, i := len(dst), 0
	dst = dst[:cap(dst)]
	for i+8 <= len(body) {
		w := load(body, i)
		binary.LittleEndian.PutUint64(dst[n:], w)
		x := w ^ low*'\\'
		m := (x - low) &^ x & high
		if m == 0 {
			i, n = i+8, n+8
			continue
		}
		plain := bits.TrailingZeros64(m) / 8
		i, n = i+plain, n+plain
		if i+1 >= len(body) {
			return dst[:n], body[i:]
		}
		var out []byte
		out, i = unescape(dst[:n], body, i)
		n = len(out)
	}
	return dst[:n], body[i:]
}

// scanLong goes on at b[i], inside the string that begins at b[start] and not behind a
// backslash that escapes. Seen is as in scanStringFrom. It is not ok if the string has no
// end.
func scanLong(b []byte, start, i int, seen uint64) (next int, escaped bool, err *SyntaxError, ok bool) {
	quote := -1 // the next one
	for {
		if quote < i {
			n := bytes.IndexByte(b[i:], '"')
			if n < 0 {
				return 0, false, nil, false
			}
			quote = i + n
		}
		end := quote
		if n := bytes.IndexByte(b[i:quote], '\\'); n >= 0 {
			end = i + n
		}
		for ; i+8 <= end; i += 8 {
			w := load(b, i)
			if m := (w - low*' ') &^ w & high; m != 0 {
				return 0, false, &SyntaxError{i + bits.TrailingZeros64(m)/8, "control character inside a string"}, true
			}
			seen |= w
		}
		for ; i < end; i++ {
			if b[i] < ' ' {
				return 0, false, &SyntaxError{i, "control character inside a string"}, true
			}
			seen |= uint64(b[i])
		}
		if end == quote {
			if seen&high != 0 {
				if bad := invalidUTF8(b[start:i]); bad >= 0 {
					return 0, false, &SyntaxError{start + bad, "invalid UTF-8"}, true
				}
			}
			return i + 1, escaped, nil, true
		}
		escaped = true
		n, err := scanEscape(b, i)
		if err != nil {
			return 0, false, err, true
		}
		i += n
	}
}
