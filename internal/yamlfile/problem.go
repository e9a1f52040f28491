package yamlfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/spelling"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Problem is one fault of a file.
type Problem struct {
	Path   string
	Line   int    // from 1
	Column int    // in characters, from 1
	Text   string // the fault
	Fix    string // how to correct it; may be empty
}

// String returns "path:line:column: text: fix".
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", p.Path, p.Line, p.Column, p.Text)
	if p.Fix != "" {
		s += "; " + p.Fix
	}
	return s
}

// Problems are the faults of a file, in its order. As an error its text has one line for
// each.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// Nearest proposes the word that was probably meant, or else lists all.
func Nearest(word string, all []string) string {
	best, at := "", 3
	for _, w := range all {
		if d := spelling.Distance(strings.ToLower(word), strings.ToLower(w)); d < at && d < len(w) {
			best, at = w, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "there are " + strings.Join(all, ", ")
}

// Quote quotes text of the file for a person, clipped when long.
func Quote(s string) string { return strconv.Quote(text.Clip(s, 60)) }
