package allow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/definition"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Line is a line of a difference, which fits no width in particular.
type Line struct {
	Sign byte   // '-': as it was; '+': as it is; ' ': the part that the lines below are about
	Text string // visible, on one line
}

// String returns the line with its sign.
func (l Line) String() string { return string(l.Sign) + " " + l.Text }

// Style returns the style of the line, for screen.Paint.
func (l Line) Style() string { return map[byte]string{'-': "31", '+': "32", ' ': "1"}[l.Sign] }

// Bounds of a difference.
const (
	maxLines  = 200
	maxLine   = 600    // bytes of a text, without what both have in common
	nearby    = 60     // bytes of that which are shown
	maxLeaves = 10_000 // values of a definition
)

// Diff returns what differs between two definitions of a tool: its texts line by line, and each value of its schemas,
// annotations and other members by its path. Icons and _meta do not count. Long texts are shown where they differ.
func Diff(old, new *mcp.Tool) []Line {
	was, is := leavesOf(old), leavesOf(new)
	if was == nil || is == nil {
		return []Line{{' ', "the definitions are too large to compare"}}
	}
	paths := make([]path, 0, len(was))
	for p := range was {
		paths = append(paths, p)
	}
	for p := range is {
		if _, both := was[p]; !both {
			paths = append(paths, p)
		}
	}
	slices.SortFunc(paths, func(a, b path) int {
		return cmp.Or(cmp.Compare(rank(a.part), rank(b.part)), cmp.Compare(a.part, b.part), cmp.Compare(a.name, b.name))
	})
	var out []Line
	part, before, after := "", partsOf(was), partsOf(is)
	for _, p := range paths {
		old, wasThere := was[p]
		now, isThere := is[p]
		if wasThere == isThere && old == now {
			continue
		}
		if p.part != part {
			part = p.part
			head := part
			switch {
			case !before[part]:
				head += ", new"
			case !after[part]:
				head += ", removed"
			}
			out = append(out, Line{' ', screen.OneLine(head)})
		}
		if p.name == "" {
			out = append(out, texts(old, now)...)
			continue
		}
		prefix := ""
		if p.name != "value" {
			prefix = p.name + ": "
		}
		if wasThere && isThere {
			old, now = narrowed(old, now)
		}
		if wasThere {
			out = append(out, Line{'-', screen.OneLine(text.Clip(prefix+old, maxLine))})
		}
		if isThere {
			out = append(out, Line{'+', screen.OneLine(text.Clip(prefix+now, maxLine))})
		}
	}
	if more := len(out) - maxLines; more > 0 {
		out = append(out[:maxLines], Line{' ', fmt.Sprintf("and %d more lines", more)})
	}
	return out
}

// path is the place of a value: the part of the definition, such as "argument to", and the name within it; an empty
// name is a text.
type path struct{ part, name string }

func partsOf(leaves map[path]string) map[string]bool {
	parts := map[string]bool{}
	for p := range leaves {
		parts[p.part] = true
	}
	return parts
}

// rank orders the parts: texts first, then annotations, arguments, and the rest.
func rank(part string) int {
	for i, begin := range []string{"title", "description", "annotations", "argument "} {
		if strings.HasPrefix(part, begin) {
			return i
		}
	}
	return 9
}

// leavesOf returns the values of a definition by their paths; nil: there are too many.
func leavesOf(t *mcp.Tool) map[path]string {
	raw, err := jsonx.Marshal(t)
	if err != nil {
		return nil
	}
	leaves := map[path]string{}
	for name, value := range jsonx.Members(jsonx.Canonical(jsonx.Without(nil, raw, definition.Unseen...))) {
		switch member := string(name); member {
		case "name":
		case "title", "description":
			s, _ := jsonx.Unquote(value)
			leaves[path{member, ""}] = s
		case "inputSchema":
			flattenSchema(leaves, "argument ", "arguments", value)
		case "outputSchema":
			flattenSchema(leaves, "result ", "result", value)
		default:
			flatten(leaves, quoted(member), "", value)
		}
	}
	if len(leaves) > maxLeaves {
		return nil
	}
	return leaves
}

// flattenSchema adds the values of the schema of an object: each property is a part.
func flattenSchema(leaves map[path]string, of, whole string, schema json.RawMessage) {
	for name, value := range jsonx.Members(schema) {
		switch {
		case string(name) == "properties" && jsonx.KindOf(value) == '{':
			for property, about := range jsonx.Members(value) {
				part := of + quoted(string(property))
				leaves[path{part, "required"}] = "false"
				flatten(leaves, part, "", about)
			}
		case string(name) != "required":
			flatten(leaves, whole, quoted(string(name)), value)
		}
	}
	required, _ := jsonx.Lookup(schema, "required")
	for e := range jsonx.Elements(required) {
		if s, err := jsonx.Unquote(e); err == nil {
			leaves[path{of + quoted(s), "required"}] = "true"
		}
	}
}

// flatten adds the values below a place, lists as a whole.
func flatten(leaves map[path]string, part, name string, value json.RawMessage) {
	if len(leaves) > maxLeaves {
		return
	}
	empty := true
	if jsonx.KindOf(value) == '{' {
		for key, v := range jsonx.Members(value) {
			empty = false
			flatten(leaves, part, strings.TrimPrefix(name+"."+quoted(string(key)), "."), v)
		}
	}
	if empty {
		leaves[path{part, cmp.Or(name, "value")}] = string(value)
	}
}

// quoted returns a name, in quotes unless it is plain, so that no name can pass for a path.
func quoted(name string) string {
	if plainName(name) {
		return name
	}
	return strconv.QuoteToASCII(text.Clip(name, 100))
}

// texts compares two texts line by line: what is between the lines that both begin and end with.
func texts(old, now string) (out []Line) {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 1 && len(b) == 1 {
		a[0], b[0] = narrowed(a[0], b[0])
	}
	for sign, lines := range map[byte][]string{'-': a, '+': b} {
		for _, line := range lines {
			if strings.TrimSpace(line) != "" {
				out = append(out, Line{sign, screen.OneLine(text.Clip(line, maxLine))})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Line) int { return cmp.Compare(b.Sign, a.Sign) })
	return out
}

// narrowed shortens what two long texts have in common at their beginnings and ends.
func narrowed(a, b string) (string, string) {
	head, tail := text.CommonEnds([]byte(a), []byte(b))
	cut := func(s string) string {
		end := ""
		if tail > 2*nearby {
			s, end = strings.ToValidUTF8(s[:len(s)-tail+nearby], ""), "…"
		}
		if head > 2*nearby {
			s = "…" + strings.ToValidUTF8(s[head-nearby:], "")
		}
		return s + end
	}
	return cut(a), cut(b)
}
