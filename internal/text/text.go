// Package text bounds text of others for errors, logs and screens.
package text

import "unicode/utf8"

// Clip returns s, or its beginning and "…" if s is longer than most bytes. It cuts between
// characters: what is UTF-8 stays UTF-8, and at most 3 bytes more are left out for that.
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
