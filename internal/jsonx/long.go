package jsonx

import (
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
		case short[c] != 0:
			dst[n], dst[n+1] = '\\', short[c]
			i, n = i+1, n+2
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
		case c < ' ':
			n = len(appendEscape(dst[:n], c))
			i++
		default: // written with its word
			i, n = i+1, n+1
		}
	}
	return dst[:n], s[i:]
}

// unescapeTo appends the text of the valid string whose opening quote is b[i], and returns
// the place after its closing quote. There is room for len(b)-i+8 bytes.
func unescapeTo(dst, b []byte, i int) (out []byte, next int) {
	n := len(dst)
	dst = dst[:cap(dst)]
	for i++; i < len(b); {
		if i+8 <= len(b) {
			w := load(b, i)
			binary.LittleEndian.PutUint64(dst[n:], w)
			m := quoteOrBackslash(w)
			if m == 0 {
				i, n = i+8, n+8
				continue
			}
			plain := bits.TrailingZeros64(m) / 8
			i, n = i+plain, n+plain
		}
		switch c := b[i]; {
		case c == '"':
			return dst[:n], i + 1
		case c != '\\' || i+1 == len(b):
			dst[n] = c
			i, n = i+1, n+1
		case simple[b[i+1]] != 0:
			dst[n] = simple[b[i+1]]
			i, n = i+2, n+1
		default:
			dst, i = unescape(dst[:n], b, i)
			n = len(dst)
			dst = dst[:cap(dst)]
		}
	}
	return dst[:n], i
}

// short holds what stands behind a backslash for what, but for what takes a u.
var short = [256]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// simple is the other way round: what stands for what behind a backslash, but for u.
var simple = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
