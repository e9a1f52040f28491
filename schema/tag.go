package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// tagged holds the struct tags of one field, before they are applied to the field's type.
type tagged struct {
	title, doc, header string
	words              []keyword // in the order of the tags
	enum, titles       []string
	examples           string
	def                string
	hasDefault         bool
	nullable, required bool
	unique             bool
}

// keyword is one constraint: a JSON Schema keyword, or "min" and the like,
// whose keyword depends on the type.
type keyword struct{ name, value string }

// readTags reads the tags this package knows. The doc comment of the package
// lists them.
func readTags(tag reflect.StructTag) (tagged, error) {
	var t tagged
	if spec, ok := tag.Lookup("jsonschema"); ok {
		if err := t.readLegacy(spec); err != nil {
			return t, err
		}
	}
	if v, ok := tag.Lookup("jsonschema_description"); ok {
		t.doc = v
	}
	if v, ok := tag.Lookup("description"); ok {
		t.doc = v
	}
	if v, ok := tag.Lookup("doc"); ok {
		t.doc = v
	}
	if v, ok := tag.Lookup("title"); ok {
		t.title = v
	}
	if v, ok := tag.Lookup("enum"); ok {
		if t.enum = splitList(v); t.enum == nil {
			return t, errors.New("tag enum: the list of values is empty; give one or more, with commas between them")
		}
	}
	if v, ok := tag.Lookup("enumTitles"); ok {
		t.titles = splitList(v)
	}
	if v, ok := tag.Lookup("examples"); ok {
		t.examples = v
	}
	if v, ok := tag.Lookup("default"); ok {
		t.def, t.hasDefault = v, true
	}
	if v, ok := tag.Lookup("header"); ok {
		if err := checkHeaderName(v); err != nil {
			return t, fmt.Errorf("tag header: %w", err)
		}
		t.header = v
	}
	for _, name := range []string{"min", "max", "exclusiveMin", "exclusiveMax", "multipleOf", "pattern", "format"} {
		if v, ok := tag.Lookup(name); ok {
			t.words = append(t.words, keyword{name, v})
		}
	}
	for _, full := range fullWords {
		if v, ok := tag.Lookup(full); ok {
			t.words = append(t.words, keyword{full, v})
		}
	}
	for _, flag := range []struct {
		name string
		set  *bool
	}{{"unique", &t.unique}, {"nullable", &t.nullable}} {
		v, ok := tag.Lookup(flag.name)
		switch {
		case !ok:
		case v == "true" || v == "false":
			*flag.set = v == "true"
		default:
			return t, fmt.Errorf("tag %s: must be true or false, got %q", flag.name, v)
		}
	}
	if t.titles != nil && len(t.titles) != len(t.enum) {
		return t, fmt.Errorf("tag enumTitles: %d titles for %d enum values", len(t.titles), len(t.enum))
	}
	return t, nil
}

// checkTwice returns the first fault of tags that say one thing twice.
func checkTwice(tag reflect.StructTag) error {
	pairs, _ := splitTags(string(tag))
	for i, p := range pairs {
		for _, q := range pairs[:i] {
			switch {
			case !slices.Contains(changeable, p.name) || shortWord(p.name) != shortWord(q.name):
			case p.name == q.name:
				return fmt.Errorf("tag %s: there are two of it; keep one", p.name)
			default:
				return fmt.Errorf("tags %s and %s: keep one", q.name, p.name)
			}
		}
	}
	return nil
}

// fullWords are the tags whose names are keywords of JSON Schema and longer than our own.
var fullWords = []string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
}

// shortWord returns our own name for a tag with the name of JSON Schema, and others as they are.
func shortWord(name string) string {
	switch {
	case name == "description":
		return "doc"
	case slices.Contains(fullWords, name):
		return strings.NewReplacer("Length", "", "Items", "", "Properties", "", "imum", "").Replace(name)
	}
	return name
}

// readLegacy reads a jsonschema tag as other Go packages write it: keywords
// such as "required,minimum=1,enum=a,enum=b", or else a plain description.
func (t *tagged) readLegacy(spec string) error {
	parts := splitList(spec)
	if len(parts) == 0 {
		return nil
	}
	if name, _, _ := strings.Cut(parts[0], "="); !legacyWords[name] || name == parts[0] && !legacyFlags[name] {
		t.doc = spec
		return nil
	}
	for _, part := range parts {
		name, value, valued := strings.Cut(part, "=")
		if !legacyWords[name] || !valued && !legacyFlags[name] {
			return fmt.Errorf("tag jsonschema: unknown part %q", part)
		}
		on := !valued || value == "true"
		switch name {
		case "required":
			t.required = on
		case "nullable":
			t.nullable = on
		case "uniqueItems":
			t.unique = on
		case "title":
			t.title = value
		case "description":
			t.doc = value
		case "enum":
			t.enum = append(t.enum, value)
		case "default":
			t.def, t.hasDefault = value, true
		case "example":
			if t.examples != "" {
				t.examples += ","
			}
			t.examples += strings.ReplaceAll(value, ",", `\,`)
		default:
			if slices.ContainsFunc(t.words, func(w keyword) bool { return w.name == name }) {
				return fmt.Errorf("tag jsonschema: there are two of %s; keep one", name)
			}
			t.words = append(t.words, keyword{name, value})
		}
	}
	return nil
}

// legacyFlags are the parts of a jsonschema tag that may stand without a value.
var legacyFlags = map[string]bool{"required": true, "nullable": true, "uniqueItems": true}

var legacyWords = map[string]bool{
	"required": true, "nullable": true, "uniqueItems": true,
	"title": true, "description": true, "enum": true, "default": true, "example": true,
	"minimum": true, "maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true,
	"minLength": true, "maxLength": true, "pattern": true, "format": true,
	"minItems": true, "maxItems": true, "minProperties": true, "maxProperties": true,
}

// splitList splits a tag at its commas. A backslash keeps a comma.
func splitList(s string) []string {
	if s == "" {
		return nil
	}
	var list []string
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == ',':
			b.WriteByte(',')
			i++
		case s[i] == ',':
			list = append(list, b.String())
			b.Reset()
		default:
			b.WriteByte(s[i])
		}
	}
	return append(list, b.String())
}
