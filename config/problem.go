package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// Problem is one fault of a file, or one warning about it.
type Problem struct {
	Path   string
	Line   int    // from 1
	Column int    // in characters, from 1
	Text   string // what is wrong
	Fix    string // what to do about it
	Server string // the server it is about; NoName: an entry whose name is empty
	Model  string // the model it is about; both empty: the file as a whole

	Disabled bool // it is about a server that is disabled, which nothing would start

	unnamed bool // the entry has no name of its own: a Document cannot say which entry is meant
}

// NoName is the Server of a problem about an entry whose name is empty.
const NoName = `""`

// String returns "path:line:column: text: fix".
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", p.Path, p.Line, p.Column, p.Text)
	if p.Fix != "" {
		s += ": " + p.Fix
	}
	return s
}

// Problems are the faults of a file, in its order. As an error its text has
// one line for each.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// quote quotes text of the file for a person, bounded in length.
func quote(s string) string { return strconv.Quote(text.Clip(s, 60)) }
