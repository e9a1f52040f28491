package arguments

import (
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/schema"
)

// signatureWidth is the maximum width of a signature, in columns, without a terminal.
const signatureWidth = 160

// Signature returns a tool in one line: edit_file(path, edits: {oldText, newText}[], dryRun?). It
// has at most width columns; 0 means signatureWidth. A longer one is shortened from the inside:
// first the members of members go, then those of arguments, then optional arguments.
func Signature(name string, input []byte, width int) string {
	if width <= 0 {
		width = signatureWidth
	}
	name = screen.OneLine(name)
	root := schema.Outline(input)
	room := width - screen.Columns(name)
	members := root.Members()
	for depth := 3; depth >= 1; depth-- {
		if inside, ok := membersLine(members, depth, room-2, false); ok {
			return name + "(" + inside + ")"
		}
	}
	if inside, ok := membersLine(members, 1, room-5, true); ok {
		return name + "(" + strings.TrimPrefix(inside+", …)", ", ")
	}
	return name + "(…)"
}

// membersLine returns the names of members, and what they contain down to depth levels. It reports
// false if that needs more than room columns.
func membersLine(members []schema.Field, depth, room int, requiredOnly bool) (string, bool) {
	var b strings.Builder
	used := 0
	for i := range members {
		m := &members[i]
		if requiredOnly && !m.Required {
			continue
		}
		text, optional := screen.OneLine(m.Name), "?"
		if m.Required {
			optional = ""
		}
		inside, ok := insideOf(m, depth-1, room-used-screen.Columns(text))
		switch {
		case !ok:
			return "", false
		case strings.HasPrefix(inside, "{"):
			text += optional + ": " + inside
		default:
			text += inside + optional
		}
		if b.Len() > 0 {
			text = ", " + text
		}
		if used += screen.Columns(text); used > room {
			return "", false
		}
		b.WriteString(text)
	}
	return b.String(), true
}

// insideOf returns the contents of a field: {a, b}, {a, b}[], [], {…}, or "" for a simple value.
func insideOf(f *schema.Field, depth, room int) (string, bool) {
	if f.Kind == schema.MultiEnum {
		return "[]", true
	}
	lists := ""
	for e := f.Elements(); e != nil && len(lists) < 2*outlineDepth; e = f.Elements() {
		lists += "[]"
		f = e
	}
	types := f.Types()
	switch {
	case f.Kind != schema.Other || len(types) != 1 || len(f.Alternatives()) > 0:
		return lists, true
	case types[0] == "array":
		return lists + "[]", true
	case types[0] != "object":
		return lists, true
	}
	members := f.Members()
	if depth <= 0 || len(members) == 0 {
		return "{…}" + lists, true
	}
	inside, ok := membersLine(members, depth, room, false)
	return "{" + inside + "}" + lists, ok
}
