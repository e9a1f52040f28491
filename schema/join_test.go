package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/schema"
)

func field(t *testing.T, of string) schema.Field {
	t.Helper()
	f := schema.Outline([]byte(of))
	return f
}

// Variants are whole: what stands beside the alternatives belongs to each of them.
func TestVariants(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"one form", `{"type":"object","properties":{"a":{}}}`, ""},
		{"alternatives", `{"type":"object","properties":{"a":{}},"required":["a"],"oneOf":[{"title":"B","properties":{"b":{}}},{"title":"C","properties":{"c":{}}},{"type":"null"}]}`, "B: b a*; C: c a*"},
		{"types", `{"type":["string","integer","null"],"minimum":1}`, "string: ; integer: "},
		{"only exclusions", `{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]},{"maxProperties":3}]}`, ""},
		{"a single one", `{"anyOf":[{"type":"object"},{"type":"null"}]}`, ""},
		{"references", `{"anyOf":[{"$ref":"#/$defs/x"},{"type":"string","title":"S"}],"$defs":{"x":{"title":"X","type":"object","properties":{"x":{}}}}}`, "X: x; S: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := field(t, tt.schema)
			var got []string
			for _, v := range f.Variants() {
				var names []string
				for _, m := range v.Members() {
					if m.Required {
						m.Name += "*"
					}
					names = append(names, m.Name)
				}
				got = append(got, v.Title+": "+strings.Join(names, " "))
			}
			if s := strings.Join(got, "; "); s != tt.want {
				t.Errorf("Variants of %s = %q, want %q", tt.schema, s, tt.want)
			}
		})
	}
}

// Many alternatives of a large schema are not repeated with it.
func TestVariantsAreBounded(t *testing.T) {
	f := field(t, `{"type":"object","description":"`+strings.Repeat("d", 50_000)+`","anyOf":[`+strings.TrimSuffix(strings.Repeat(`{"properties":{"a":{}}},`, 100), ",")+`]}`)
	if got := f.Variants(); got != nil {
		t.Errorf("Variants returns %d fields of a large schema", len(got))
	}
}

// The schemas of an allOf are one form, also below each other; a property of several is described by all of them.
func TestAllOf(t *testing.T) {
	f := field(t, `{"allOf":[{"$ref":"#/$defs/a"},{"properties":{"b":{"description":"both"}},"required":["b"]},true],"$defs":{"a":{"allOf":[{"type":"object","properties":{"a":{}}},{"properties":{"b":{"type":"integer","minimum":3}}}]}}}`)
	var got string
	for _, m := range f.Members() {
		got += fmt.Sprintf("%s %v %v %q %s;", m.Name, m.Kind, m.Required, m.Description, m.Min)
	}
	if want := `a other false "" ;b integer true "both" 3;`; got != want {
		t.Errorf("Members = %s, want %s", got, want)
	}
}

func TestPlaces(t *testing.T) {
	for of, want := range map[string]int{
		`{"type":"array","prefixItems":[{"type":"string"},{}]}`: 2,
		`{"type":"array","items":[{"type":"string"}]}`:          1,
		`{"type":"array","items":{"type":"string"}}`:            0,
	} {
		f := field(t, of)
		if got := f.Places(); len(got) != want {
			t.Errorf("Places of %s = %d fields, want %d", of, len(got), want)
		}
	}
}

// A reference to an anchor of a definition leads there.
func TestAnchorOfDefinition(t *testing.T) {
	f := field(t, `{"type":"object","properties":{"a":{"$ref":"#here"}},"$defs":{"x":{"$anchor":"here","type":"integer"}}}`)
	if m := f.Members(); len(m) != 1 || m[0].Kind != schema.Integer {
		t.Errorf("Members = %+v, want an integer", m)
	}
}
