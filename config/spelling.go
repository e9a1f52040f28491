package config

import (
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/spelling"
)

// misspelt returns the word of list that resembles name, or "" if name is in the list or
// resembles none.
func misspelt(name string, list []string) string {
	if slices.Contains(list, name) {
		return ""
	}
	lower := strings.ToLower(name)
	for _, word := range list {
		allowed := 2
		if len(word) < 6 {
			allowed = 1
		}
		if spelling.Distance(lower, strings.ToLower(word)) <= allowed {
			return word
		}
	}
	return ""
}
