package providers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/spelling"
)

// Efforts are the words for how much a model thinks before it answers, least first.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// OwnMembers are the members of requests that only the program sets.
var OwnMembers = []string{"model", "messages", "input", "system", "instructions", "tools", "tool_choice", "stream", "stream_options", "store", "include"}

// CheckEffort returns an error that names the known efforts if a word is not one of them.
func CheckEffort(word string) error {
	lower := strings.ToLower(word)
	if slices.Contains(Efforts, lower) {
		return nil
	}
	near := ""
	for _, known := range Efforts {
		if spelling.Distance(lower, known) <= len(known)/3 {
			near = fmt.Sprintf(" (did you mean %q?)", known)
		}
	}
	return fmt.Errorf("unknown effort %q%s: it is %s or %s", word, near, strings.Join(Efforts[:len(Efforts)-1], ", "), Efforts[len(Efforts)-1])
}
