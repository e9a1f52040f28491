package jsonx

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/buffer"
)

// Long texts have few escapes, most of them line breaks. Between escapes the text is copied eight
// bytes at a time, before it is known how many of them are plain; this takes half as long as
// finding the end of each plain stretch and copying it.

// longText is the length in bytes from which this is faster.
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
		default: // already written with its word
			i, n = i+1, n+1
		}
	}
	return dst[:n], s[i:]
}

// unescapeTo appends the text of the valid string whose opening quote is b[i], and returns the
// position after its closing quote. The buffer dst must have room for len(b)-i+8 bytes.
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

// short maps a character to the one that stands for it after a backslash, if there is one.
var short = [256]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// simple is the inverse: the character that stands for each character after a backslash, except
// u.
var simple = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
