package jsonx

import (
	"unicode"
	"unicode/utf8"
)

// Mistakable reports whether name differs from known but a lax reader takes it for known. Such
// readers ignore case, as encoding/json does by Unicode simple folding (K, the Kelvin sign, is a
// k) and others by upper or lower case (ı and İ are an i), or accept snake_case for camelCase, so
// "_" and "-" are ignored too.
func Mistakable(name []byte, known string) bool {
	if string(name) == known {
		return false
	}
	i, j := 0, 0
	for {
		a, n := laxRune(name[i:])
		b, m := laxRune(known[j:])
		if a != b {
			return false
		}
		if n == 0 {
			return true
		}
		i, j = i+n, j+m
	}
}

// laxRune returns the first rune of s that is not ignored, folded, and the position after it; -1
// and 0 at the end.
func laxRune[T string | []byte](s T) (r rune, n int) {
	for n < len(s) {
		c := s[n]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune([]byte(s[n:min(len(s), n+utf8.UTFMax)]))
			return foldRune(r), n + size
		}
		n++
		switch {
		case c == '_' || c == '-':
		case 'A' <= c && c <= 'Z':
			return rune(c) + 'a' - 'A', n
		default:
			return rune(c), n
		}
	}
	return -1, 0
}

// foldRune returns the same rune for all case variants of a letter; for an ASCII letter, the
// lower-case one.
func foldRune(r rune) rune {
	if r == 'ı' || r == 'İ' {
		return 'i'
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}
