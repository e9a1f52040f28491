package schema

import (
	"maps"
	"slices"
	"strings"
)

// hint proposes the property that was meant by an unknown name, as the tail of
// an error: `, did you mean "city"?`. Without a near miss of a struct with few
// fields it lists what is known.
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
			if d := distance(folded, fold(known)); d < least && 3*d <= max(len(name), len(known))+1 {
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
	b.WriteString(", known are ")
	for i := range n.fields {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(n.fields[i].name)
	}
	return b.String()
}

// fold drops what people vary in names: case, and the way words are joined.
func fold(s string) string { return joints.Replace(strings.ToLower(s)) }

var joints = strings.NewReplacer("_", "", "-", "", " ", "")

// distance is how many letters must be put in, left out, changed, or swapped
// with a neighbour to make b of a.
func distance(a, b string) int {
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
