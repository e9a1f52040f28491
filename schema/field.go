package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// newField returns the field for the schema in raw.
func newField(name string, raw json.RawMessage, refs *references) Field {
	f := Field{Name: name, refs: refs}
	s := f.unwrap(refs.resolve(raw))
	f.Schema = s.raw()
	f.Title, f.Description = s.text("title"), s.text("description")
	f.Default = s.get("default")
	f.Format, f.Pattern = s.text("format"), s.text("pattern")

	types := s.types()
	if i := slices.Index(types, "null"); i >= 0 {
		f.nullable = true
		types = slices.Delete(slices.Clone(types), i, i+1)
	}
	f.text = len(types) == 0 || slices.Contains(types, "string")
	if f.Options = options(s); f.Options != nil {
		f.Kind = Enum
		return f
	}
	f.Kind = Other
	if len(types) != 1 {
		return f
	}
	switch types[0] {
	case "string":
		f.Kind, f.Min, f.Max = String, s.number("minLength"), s.number("maxLength")
	case "number":
		f.Kind, f.Min, f.Max = Number, s.number("minimum"), s.number("maximum")
	case "integer":
		f.Kind, f.Min, f.Max = Integer, s.number("minimum"), s.number("maximum")
	case "boolean":
		f.Kind = Boolean
	case "array":
		if f.Options = options(refs.resolve(s.get("items"))); f.Options != nil {
			f.Kind, f.Min, f.Max = MultiEnum, s.number("minItems"), s.number("maxItems")
		}
	}
	return f
}

// unwrap turns "one thing or null" into the one thing, and an allOf of one schema into that.
func (f *Field) unwrap(s schemaObject) schemaObject {
	if list := s.list("allOf"); len(list) == 1 {
		s = f.refs.resolve(list[0]).with(s.without("allOf"))
	}
	s = f.refs.joined(s, 0)
	for _, key := range []string{"anyOf", "oneOf"} {
		list := s.list(key)
		if len(list) != 2 {
			continue
		}
		for i := range list {
			null := f.refs.resolve(list[i])
			if null.text("type") == "null" {
				f.nullable = true
				return f.refs.resolve(list[1-i]).with(s.without(key))
			}
		}
	}
	return s
}

// options returns the choices of a schema: enum, with enumNames if there are as many; oneOf or
// anyOf with only const in them; const. Null is not a choice: it means that the field is left
// out.
func options(s schemaObject) []Option {
	var found []Option
	add := func(value json.RawMessage, title string) {
		value = bytes.TrimSpace(value)
		if string(value) == "null" {
			return
		}
		if title == "" {
			title = shown(value)
		}
		found = append(found, Option{value, title})
	}
	if c := s.get("const"); c != nil {
		add(c, s.text("title"))
		return found
	}
	if enum := s.list("enum"); enum != nil {
		names := s.list("enumNames")
		for i, v := range enum {
			title := ""
			if len(names) == len(enum) {
				title = shown(names[i])
			}
			add(v, title)
		}
		return found
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		for _, raw := range s.list(key) {
			list, err := members(raw)
			alt := schemaObject(list)
			if err != nil || alt.get("const") == nil {
				found = nil
				break
			}
			add(alt.get("const"), alt.text("title"))
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// shown returns a JSON value for people: strings without their quotes.
func shown(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil && len(raw) > 0 && raw[0] == '"' {
		return s
	}
	return string(raw)
}

// Parse turns what a person typed into a JSON value that fits the field. If it does not fit, the
// error is a [*ValidationError] that names the accepted values.
//
// A String takes the text as it is. A Boolean takes true, yes, y, on and 1 and their opposites.
// An Enum takes a value or its title and, if that is unambiguous, either in any letter case and with
// underscores or more white space in place of a space. A MultiEnum
// takes several, with commas between them, or a JSON array. An Other takes JSON, or plain text
// where a string is allowed. Null is null in any field that may be null, except in a String.
func (f *Field) Parse(text string) (json.RawMessage, error) {
	value, problem := f.read(text)
	if problem == "" {
		problem = f.problem(value)
	}
	if problem == "" {
		return value, nil
	}
	return nil, &ValidationError{Faults: []Fault{{Path: pathName(f.Name), Problem: problem}}}
}

// read turns text into JSON of the field's kind.
func (f *Field) read(text string) (value json.RawMessage, problem string) {
	trimmed := strings.TrimSpace(text)
	if f.nullable && trimmed == "null" && f.Kind != String {
		return json.RawMessage("null"), ""
	}
	switch f.Kind {
	case String:
		return quoteJSON(text), ""
	case Number, Integer:
		if !isNumber(trimmed) {
			want := "must be a number such as 2.5"
			if f.Kind == Integer {
				want = "must be a whole number such as 3"
			}
			return nil, want + ", got " + quote(text)
		}
		return json.RawMessage(trimmed), ""
	case Boolean:
		switch strings.ToLower(trimmed) {
		case "true", "yes", "y", "on", "1":
			return json.RawMessage("true"), ""
		case "false", "no", "n", "off", "0":
			return json.RawMessage("false"), ""
		}
		return nil, "must be true or false (or yes or no), got " + quote(text)
	case Enum:
		if o := f.option(trimmed); o != nil {
			return o.Value, ""
		}
		return nil, f.choices(text)
	case MultiEnum:
		return f.readMany(trimmed)
	}
	if jsonx.Valid([]byte(trimmed), maxDepth) == nil {
		if raw := json.RawMessage(trimmed); !f.text || f.problem(raw) == "" {
			return raw, ""
		}
	}
	if f.text {
		return quoteJSON(text), ""
	}
	return nil, "must be JSON for " + excerpt(string(f.Schema)) + ", got " + quote(text)
}

// readMany reads the choices of a MultiEnum.
func (f *Field) readMany(text string) (json.RawMessage, string) {
	if strings.HasPrefix(text, "[") {
		if jsonx.Valid([]byte(text), maxDepth) == nil {
			return json.RawMessage(text), ""
		}
	}
	value := []byte{'['}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		o := f.option(part)
		if o == nil {
			return nil, f.choices(part)
		}
		if len(value) > 1 {
			value = append(value, ',')
		}
		value = append(value, o.Value...)
	}
	return append(value, ']'), ""
}

// option finds the choice that text names: by value, by title, then by either
// without regard to case, underscores and white space if only one choice fits.
func (f *Field) option(text string) *Option {
	for i := range f.Options {
		if shown(f.Options[i].Value) == text {
			return &f.Options[i]
		}
	}
	for i := range f.Options {
		if f.Options[i].Title == text {
			return &f.Options[i]
		}
	}
	var found *Option
	for i := range f.Options {
		o := &f.Options[i]
		if strings.EqualFold(spaced(o.Title), spaced(text)) || strings.EqualFold(spaced(shown(o.Value)), spaced(text)) {
			if found != nil {
				return nil
			}
			found = o
		}
	}
	return found
}

// spaced returns a text with one space for each run of white space and underscores.
func spaced(text string) string {
	if words := strings.Fields(strings.ReplaceAll(text, "_", " ")); len(words) > 0 {
		return strings.Join(words, " ")
	}
	return text
}

// choices returns the fault of a text that names no option.
func (f *Field) choices(text string) string {
	values := make([]json.RawMessage, len(f.Options))
	for i, o := range f.Options {
		values[i] = json.RawMessage(o.Title)
		if v := shown(o.Value); v != o.Title {
			values[i] = json.RawMessage(v + " (" + o.Title + ")")
		}
	}
	return "must be " + oneOf(values) + ", got " + quote(text)
}

// problem returns the first fault of value according to the field's schema, or "" if it fits. It
// does not check the rest of the form.
func (f *Field) problem(value json.RawMessage) string {
	if f.check == nil {
		return ""
	}
	path := ""
	for at := f; at != nil; at = at.outer {
		if at.element {
			value, path = slices.Concat([]byte{'['}, value, []byte{']'}), "[0]"+path
			continue
		}
		value = appendObject(nil, map[string]json.RawMessage{at.Name: value})
		if path = pathName(at.Name) + path; at.outer != nil {
			path = "." + path
		}
	}
	faults, _ := f.check.faults(value)
	for _, fault := range faults {
		rest, ours := strings.CutPrefix(fault.Path, path)
		switch {
		case !ours:
		case rest == "":
			return fault.Problem
		case rest[0] == '.':
			return rest[1:] + ": " + fault.Problem
		case rest[0] == '[':
			return rest + ": " + fault.Problem
		}
	}
	return ""
}
