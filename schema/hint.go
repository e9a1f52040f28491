package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/spelling"
)

// hint proposes the property that an unknown name probably means, as the tail of an error: `, did
// you mean "city"?`. If no name is close and the struct has few fields, it lists them.
func hint(n *node, name string) string {
	if len(n.fields) == 0 {
		return ", no properties are allowed"
	}
	best, least := "", 3
	if len(name) <= quoteMax {
		folded := fold(name)
		for i := range n.fields {
			known := n.fields[i].name
			if len(known) > quoteMax {
				continue
			}
			if d := spelling.Distance(folded, fold(known)); d < least && 3*d <= max(len(name), len(known))+1 {
				best, least = known, d
			}
		}
	}
	if best != "" {
		return ", did you mean " + quote(best) + "?"
	}
	if len(n.fields) > 5 {
		return ""
	}
	var b strings.Builder
	b.WriteString("; known: ")
	for i := range n.fields {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(n.fields[i].name)
	}
	return b.String()
}

// fold removes differences in case and in the way words are joined.
func fold(s string) string { return joints.Replace(strings.ToLower(s)) }

var joints = strings.NewReplacer("_", "", "-", "", " ", "")

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
