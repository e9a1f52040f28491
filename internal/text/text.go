// Package text clips text from peers for errors, logs and screens.
package text

import "unicode/utf8"

// Clip returns s, or its beginning and "…" if s is longer than most bytes. It cuts between
// characters: UTF-8 stays valid, and at most 3 more bytes are left out for that.
func Clip[T ~string | ~[]byte](s T, most int) string {
	if len(s) <= most {
		return string(s)
	}
	end := most
	for end > 0 && end > most-utf8.UTFMax+1 && !utf8.RuneStart(s[end]) {
		end--
	}
	return string(s[:end]) + "…"
}

// Short is Clip to 200 bytes: the bound for a name, URI or message from a peer in an error or a log
// line.
func Short[T ~string | ~[]byte](s T) string { return Clip(s, 200) }

// CommonEnds returns how many elements two lists have in common at their beginnings, and how many of the others at their
// ends.
func CommonEnds[E comparable](a, b []E) (head, tail int) {
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}
