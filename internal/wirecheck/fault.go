package wirecheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// Fault reports the fault of a frame.
type Fault struct {
	Revision string // the revision it was checked against; empty if none
	Type     string // the definition, or the part of JSON-RPC, that it violates
	Pointer  string // JSON pointer to the value that was checked
	Text     string // the fault, with the places of the faults inside
	Rule     string // ID of the requirement, if it is not in the schema
}

// Error returns the revision, type, place and text on one line.
func (f *Fault) Error() string {
	s := fmt.Sprintf("%s at %q: %s", f.Type, f.Pointer, f.Text)
	if f.Revision != "" {
		s = f.Revision + " " + s
	}
	if f.Rule != "" {
		s += " (" + f.Rule + ")"
	}
	return s
}

// mostFaults bounds the faults of one value that are reported.
const mostFaults = 3

var english = message.NewPrinter(language.English)

// describe returns the relevant faults: of alternatives, only those of the one that was meant.
func describe(err error, pointer string) string {
	var top *jsonschema.ValidationError
	if !errors.As(err, &top) {
		return text.Short(err.Error())
	}
	var parts []string
	faults := leaves(top)
	for i, leaf := range faults {
		if i == mostFaults {
			parts = append(parts, fmt.Sprintf("and %d more", len(faults)-i))
			break
		}
		problem := leaf.ErrorKind.LocalizedString(english)
		if _, ok := leaf.ErrorKind.(*kind.FalseSchema); ok {
			problem = "no such member in this revision"
		}
		parts = append(parts, fmt.Sprintf("%q: %s", pointer+pointerOf(leaf.InstanceLocation), text.Short(problem)))
	}
	return strings.Join(parts, "; ")
}

func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if best := meant(e); best != nil {
			return leaves(best)
		}
	}
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		out = append(out, leaves(cause)...)
	}
	return out
}

// meant returns the alternative that a value was probably meant to be: one whose discriminating
// constant (type, method, mode) fits, then the one that matched furthest, then the one with the
// fewest faults.
func meant(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	var best *jsonschema.ValidationError
	bestScore := math.MinInt
	for _, cause := range e.Causes {
		score, deepest := 0, 0
		faults := leaves(cause)
		for _, leaf := range faults {
			if _, ok := leaf.ErrorKind.(*kind.Const); ok && len(leaf.InstanceLocation) == len(e.InstanceLocation)+1 {
				score -= 1000
			}
			deepest = max(deepest, len(leaf.InstanceLocation))
		}
		if score += 10*deepest - len(faults); score > bestScore {
			best, bestScore = cause, score
		}
	}
	return best
}

func pointerOf(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return b.String()
}

// number returns the integer of a JSON number.
func number(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}
