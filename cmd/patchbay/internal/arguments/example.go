package arguments

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/schema"
)

// An example of a call comes from the examples, defaults and choices of the schema. Without these,
// a text is the name of its argument in capitals. The schema accepts the example; the server may
// refuse it.

const (
	exampleDepth = 6
	exampleBytes = 2000
)

// Example returns arguments for a call as words of a command line: the required ones, or all if the
// schema does not accept these alone. Optional arguments whose schema has examples are included,
// because a server may require one of several. If no argument is required, the example has the first
// argument with members of its own, which is hard to guess. Example returns nil if no example fits
// the schema or the example is too long.
func Example(form *schema.Form, input []byte) []string {
	root := schema.Outline(input)
	members := root.Members()
	teaches := -1 // index of the optional member to show; -1: none
	if !slices.ContainsFunc(members, func(m schema.Field) bool { return m.Required }) {
		teaches = slices.IndexFunc(members, func(m schema.Field) bool { return hasParts(&m) })
	}
	for _, all := range []bool{false, true} {
		values := map[string]json.RawMessage{}
		words, size := []string{}, 0
		for i, m := range members {
			if _, shown := jsonx.Lookup(m.Schema, "examples"); !m.Required && !all && !shown && i != teaches {
				continue
			}
			v := exampleOf(&m, all, 1)
			values[m.Name] = v
			words = append(words, exampleWord(&m, v)...)
			if size += len(m.Name) + len(v); size > exampleBytes {
				return nil
			}
		}
		if form.Check(values) == nil {
			return words
		}
	}
	return nil
}

// Call returns a command that calls a tool with an [Example] and can be pasted into a shell. The function
// other makes a command of its words. The result is empty without an example, and if a name or a value, which
// comes from the server, could act as a flag, a variable or the end of the line.
func Call(other func(words ...string) string, name string, form *schema.Form, input []byte) string {
	words := Example(form, input)
	command := other(append([]string{"call", name}, words...)...)
	switch {
	case words == nil, strings.HasPrefix(name, "-"), screen.Visible(command) != command:
	case strings.ContainsAny(command, "\n\t"), strings.Contains(strings.Join(words, " "), "$TOKEN"):
	default:
		return command
	}
	return ""
}

// exampleWord returns an argument as it is typed: key=value if the schema gives that the right
// type, else key:=JSON.
func exampleWord(f *schema.Field, v json.RawMessage) []string {
	if f.Name == "" || strings.ContainsAny(f.Name, "=:{@-") {
		return []string{string(slices.Concat([]byte{'{'}, jsonx.AppendString(nil, f.Name), []byte{':'}, v, []byte{'}'}))}
	}
	asJSON := []string{f.Name + ":=" + string(v)}
	switch f.Kind {
	case schema.String, schema.Enum, schema.Number, schema.Integer, schema.Boolean:
		text := screen.Plain(v)
		if got, err := f.Parse(text); strings.HasPrefix(text, "@") || err != nil || string(got) != string(v) {
			return asJSON
		}
		return []string{f.Name + "=" + text}
	}
	return asJSON
}

// exampleOf returns a value that a field accepts; for an object, its required members or all of
// them.
func exampleOf(f *schema.Field, all bool, depth int) json.RawMessage {
	given, _ := jsonx.Lookup(f.Schema, "examples")
	for v := range jsonx.Elements(given) {
		return v
	}
	switch {
	case f.Default != nil && string(f.Default) != "null" && string(f.Default) != `""`:
		return f.Default
	case f.Kind == schema.MultiEnum:
		return slices.Concat([]byte{'['}, f.Options[0].Value, []byte{']'})
	case len(f.Options) > 0:
		return f.Options[0].Value
	}
	types := f.Types()
	switch {
	case f.Kind == schema.Boolean:
		return json.RawMessage("true")
	case f.Kind == schema.Integer || f.Kind == schema.Number:
		return exampleNumber(f)
	case f.Kind == schema.String:
		return jsonx.AppendString(nil, exampleText(f))
	case depth > exampleDepth:
		return json.RawMessage("null")
	case slices.Contains(types, "array"):
		out := json.RawMessage{'['}
		if e := f.Elements(); e != nil {
			minItems, _ := jsonx.Lookup(f.Schema, "minItems")
			least, _ := strconv.Atoi(string(minItems))
			for i := range min(max(1, least), 3) {
				if i > 0 {
					out = append(out, ',')
				}
				out = append(out, exampleOf(e, all, depth+1)...)
			}
		}
		return append(out, ']')
	case slices.Contains(types, "object") || namesMembers(f):
		return exampleObject(f, all, depth)
	}
	for _, alt := range f.Alternatives() {
		return exampleOf(&alt, all, depth+1)
	}
	return jsonx.AppendString(nil, exampleText(f))
}

func exampleObject(f *schema.Field, all bool, depth int) json.RawMessage {
	members := f.Members()
	wanted := slices.DeleteFunc(slices.Clone(members), func(m schema.Field) bool { return !m.Required })
	switch {
	case all:
		wanted = members
	case len(wanted) == 0:
		wanted = members[:min(1, len(members))]
	}
	out := json.RawMessage{'{'}
	for i := range wanted {
		if len(out) > exampleBytes {
			break // too long to show anyway
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(jsonx.AppendString(out, wanted[i].Name), ':'), exampleOf(&wanted[i], all, depth+1)...)
	}
	if others := f.Others(); others != nil && len(members) == 0 {
		out = append(append(out, `"NAME":`...), exampleOf(others, all, depth+1)...)
	}
	return append(out, '}')
}

func exampleNumber(f *schema.Field) json.RawMessage {
	switch {
	case f.Min != "":
		return json.RawMessage(f.Min)
	case f.Max != "":
		return json.RawMessage(f.Max)
	}
	return json.RawMessage("1")
}

// exampleTexts are texts in the formats of JSON Schema.
var exampleTexts = map[string]string{
	"date": "2026-01-31", "date-time": "2026-01-31T12:00:00Z", "time": "12:00:00Z", "duration": "PT1H",
	"email": "me@example.com", "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.com/", "uri-reference": "https://example.com/", "iri": "https://example.com/", "url": "https://example.com/",
	"uuid": "00000000-0000-4000-8000-000000000000", "regex": ".*",
}

// exampleText returns a text for a field: its name in capitals, made to fit minLength and
// maxLength.
func exampleText(f *schema.Field) string {
	if s := exampleTexts[f.Format]; s != "" {
		return s
	}
	var b strings.Builder
	last := rune('_')
	for _, r := range f.Name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = '_'
		case unicode.IsUpper(r) && unicode.IsLower(last):
			b.WriteByte('_')
		}
		if b.WriteRune(unicode.ToUpper(r)); b.Len() > 60 {
			break
		}
		last = r
	}
	text := cmp.Or(b.String(), "TEXT")
	least, _ := strconv.Atoi(string(f.Min))
	for least = min(least, exampleBytes); len(text) < least; {
		text += "X"
	}
	if most, err := strconv.Atoi(string(f.Max)); err == nil && most < len(text) {
		text = strings.Repeat("X", max(0, most))
	}
	return text
}
