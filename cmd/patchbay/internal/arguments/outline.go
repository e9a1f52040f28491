package arguments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/schema"
)

// The outline shows the arguments or the result of a tool to people: a table in which the members
// of objects and lists follow them, indented. A schema may be huge or contain itself, so depth,
// rows and choices are bounded.
const (
	outlineDepth   = 4   // levels of members
	outlineRows    = 200 // members in all
	outlineChoices = 20  // values of an enum, or alternatives
)

// RequiredMark follows the name of a required argument.
const RequiredMark = " *"

// Part is a member that a schema names, or the beginning of an alternative.
type Part struct {
	Depth int // 1: a member of the schema itself
	Name  string
	Field *schema.Field // nil: Name is "either" or "or", and the members of an alternative follow
	Other bool          // it stands for members of any other name
	About string        // title and description
}

// Parts returns the members that a schema of objects names, each followed by its own, and the number of
// members left out.
func Parts(raw []byte) (parts []Part, more int) {
	root := schema.Outline(raw)
	o := outline{}
	o.below(&root, 1)
	return o.parts, o.more
}

// Outline returns a row for each of the [Parts], indented below its parent, and the number of members
// left out. If marks is set, required members carry [RequiredMark].
func Outline(raw []byte, marks bool) (rows []screen.Row, more int) {
	parts, more := Parts(raw)
	for _, p := range parts {
		name, text := p.Name, p.About
		switch {
		case p.Other:
			text = "any other name: " + Kind(p.Field)
		case p.Field != nil:
			if p.Field.Required && marks {
				name += RequiredMark
			}
			if text = Kind(p.Field); p.About != "" {
				text += ": " + p.About
			}
		}
		rows = append(rows, screen.Row{Name: strings.Repeat("  ", p.Depth) + screen.OneLine(name), About: text})
	}
	return rows, more
}

// outline collects the parts.
type outline struct {
	parts []Part
	more  int // members left out
}

func (o *outline) add(p Part) bool {
	if len(o.parts) >= outlineRows {
		o.more++
		return false
	}
	o.parts = append(o.parts, p)
	return true
}

// below adds the members of an object, of the elements of a list, and of the alternatives that are
// objects.
func (o *outline) below(f *schema.Field, depth int) {
	f = innermost(f)
	if depth > outlineDepth || f.Kind != schema.Other {
		return
	}
	members := f.Members()
	for i := range members {
		m := &members[i]
		if len(o.parts) >= outlineRows {
			o.more += len(members) - i
			return
		}
		o.add(Part{Depth: depth, Name: m.Name, Field: m, About: screen.About(m.Name, m.Title, m.Description)})
		o.below(m, depth+1)
	}
	if others := f.Others(); others != nil && hasParts(others) {
		if o.add(Part{Depth: depth, Name: "NAME", Field: others, Other: true}) {
			o.below(others, depth+1)
		}
	}
	said := "either"
	for i, alt := range f.Alternatives() {
		if i < outlineChoices && hasParts(&alt) && o.add(Part{Depth: depth, Name: said, About: strings.TrimSpace(alt.Title + " " + alt.Description)}) {
			o.below(&alt, depth+1)
			said = "or"
		}
	}
}

// innermost returns the elements of a list, or of a list of lists; for anything else f itself.
func innermost(f *schema.Field) *schema.Field {
	for range outlineDepth {
		e := f.Elements()
		if e == nil {
			break
		}
		f = e
	}
	return f
}

// hasParts reports whether a field has members to show.
func hasParts(f *schema.Field) bool { return namesMembers(innermost(f)) }

// namesMembers reports whether Members of a field returns any.
func namesMembers(f *schema.Field) bool {
	properties, _ := jsonx.Lookup(f.Schema, "properties")
	for range jsonx.Members(properties) {
		return true
	}
	return false
}

// Words describes the values that a field accepts.
func Words(f *schema.Field) string { return kindWords(f, false, 0) }

// Kind describes the values that a field accepts, and its default.
func Kind(f *schema.Field) string {
	s := Words(f)
	if d := string(f.Default); d != "" && d != "[]" && d != "{}" && d != "null" {
		s += " [" + screen.Plain(f.Default) + "]"
	}
	return s
}

// kindWords describes the values that a field accepts; several asks for the plural.
func kindWords(f *schema.Field, several bool, depth int) string {
	s := ""
	if several {
		s = "s"
	}
	switch f.Kind {
	case schema.Enum, schema.MultiEnum:
		var names []string
		for i, o := range f.Options {
			if i == outlineChoices {
				names = append(names, fmt.Sprintf("%d more", len(f.Options)-i))
				break
			}
			v := screen.Plain(o.Value)
			if o.Title != v {
				v += " (" + o.Title + ")"
			}
			names = append(names, v)
		}
		choices := strings.Join(names, " | ")
		if f.Kind == schema.MultiEnum {
			return "several of " + choices
		}
		return choices
	case schema.String:
		if f.Format != "" {
			return f.Format + bounds(f, " characters")
		}
		return "text" + bounds(f, " characters")
	case schema.Integer:
		return "whole number" + s + bounds(f, "")
	case schema.Number:
		return "number" + s + bounds(f, "")
	case schema.Boolean:
		return "true or false"
	}
	alternatives := f.Alternatives()
	types := f.Types()
	switch {
	case depth > outlineDepth:
		return "JSON"
	case len(alternatives) > 0 && !namesMembers(f):
		var all []string
		for i := range alternatives {
			if i == outlineChoices {
				all = append(all, fmt.Sprintf("%d more", len(alternatives)-i))
				break
			}
			if words := kindWords(&alternatives[i], several, depth+1); !slices.Contains(all, words) {
				all = append(all, words)
			}
		}
		return strings.Join(all, ", or ")
	case slices.Equal(types, []string{"array"}):
		if e := f.Elements(); e != nil {
			if words := kindWords(e, true, depth+1); words != "JSON" {
				return "list" + s + " of " + words
			}
		}
		return "list" + s
	case slices.Equal(types, []string{"object"}) || len(types) == 0 && namesMembers(f):
		if o := f.Others(); o != nil && !namesMembers(f) {
			return "object" + s + ", each value " + kindWords(o, false, depth+1)
		}
		return "object" + s
	case len(types) > 1:
		names := map[string]string{"string": "text", "integer": "whole number" + s, "number": "number" + s, "boolean": "true or false", "array": "list" + s, "object": "object" + s}
		var all []string
		for _, t := range types {
			all = append(all, cmp.Or(names[t], t))
		}
		return strings.Join(all, ", or ")
	}
	return "JSON"
}

// bounds describes the minimum and maximum of a field in a unit, which may be empty.
func bounds(f *schema.Field, unit string) string {
	of, least := "", " from "+string(f.Min)
	if unit != "" {
		of, least = " of", " of "+string(f.Min)+" or more"
	}
	switch {
	case f.Min != "" && f.Max != "":
		return fmt.Sprintf("%s %s to %s%s", of, f.Min, f.Max, unit)
	case f.Min != "":
		return least + unit
	case f.Max != "":
		return fmt.Sprintf("%s up to %s%s", of, f.Max, unit)
	}
	return ""
}
