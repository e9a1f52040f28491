package toolschema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/schema"
)

func TestAdapt(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		inline         bool
		words          string // in them
	}{
		{name: "nothing", in: ``, want: `{"properties":{},"type":"object"}`},
		{name: "an empty one", in: `{}`, want: `{"properties":{},"type":"object"}`},
		{name: "true", in: `true`, want: `{"properties":{},"type":"object"}`},
		{name: "a plain one", in: `{"$schema":"x","type":"object","properties":{"a":{"type":"string","x-mine":1}},"required":["a"],"additionalProperties":false}`,
			want: `{"additionalProperties":false,"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`},
		{name: "a big number", in: `{"properties":{"a":{"maximum":9007199254740993}}}`, want: `{"properties":{"a":{"maximum":9007199254740993}},"type":"object"}`},
		{name: "an object or null", in: `{"type":["object","null"]}`, want: `{"properties":{},"type":"object"}`},
		{name: "alternatives", in: `{"oneOf":[{"properties":{"a":{"type":"string"},"c":{"const":1}},"required":["a","c"]},{"properties":{"b":{"type":"number"},"c":{"const":2}},"required":["b","c"]}],"additionalProperties":false}`,
			want:  `{"properties":{"a":{"anyOf":[{"type":"string"},{}]},"b":{"anyOf":[{"type":"number"},{}]},"c":{"anyOf":[{"const":1},{"const":2}]}},"required":["c"],"type":"object"}`,
			words: "exactly one of these schemas"},
		{name: "an object or nothing", in: `{"anyOf":[{"type":"null"},{"type":"object","properties":{"a":{}},"required":["a"]}]}`,
			want: `{"properties":{"a":{}},"required":["a"],"type":"object"}`, words: "at least one"},
		{name: "parts", in: `{"allOf":[{"$ref":"#/$defs/x"},{"properties":{"b":{}},"required":["b"]}],"$defs":{"x":{"properties":{"a":{}},"required":["a"]}}}`,
			want: `{"$defs":{"x":{"properties":{"a":{}},"required":["a"]}},"properties":{"a":{},"b":{}},"required":["a","b"],"type":"object"}`},
		{name: "a reference at the top", in: `{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
			want: `{"$defs":{"x":{"properties":{"a":{"type":"string"}},"type":"object"}},"properties":{"a":{"type":"string"}},"type":"object"}`},
		{name: "references that stay", in: `{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`,
			want: `{"$defs":{"x":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/x"}},"type":"object"}`},
		{name: "references that go", inline: true, in: `{"properties":{"a":{"$ref":"#/$defs/x","description":"here"}},"$defs":{"x":{"type":"string"}}}`,
			want: `{"properties":{"a":{"description":"here","type":"string"}},"type":"object"}`},
		{name: "a tree", inline: true, in: `{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"properties":{"next":{"$ref":"#/$defs/x"}}}}}`,
			want: `{"properties":{"a":{"properties":{"next":{}}}},"type":"object"}`},
		{name: "a reference to nowhere", in: `{"properties":{"a":{"$ref":"https://example.com/x"}}}`, want: `{"properties":{"a":{}},"type":"object"}`},
		{name: "older drafts", in: `{"properties":{"a":{"minimum":1,"exclusiveMinimum":true,"required":true},"b":{"type":"array","items":[{"type":"string"}],"additionalItems":false},"c":{"type":"any"}}}`,
			want: `{"properties":{"a":{"minimum":1},"b":{"items":false,"prefixItems":[{"type":"string"}],"type":"array"},"c":{}},"type":"object"}`},
		{name: "rules", in: `{"properties":{"a":{}},"not":{"required":["b"]},"if":{"required":["a"]},"then":{"required":["c"]}}`,
			want: `{"properties":{"a":{}},"type":"object"}`, words: `{"if":{"required":["a"]},"not":{"required":["b"]},"then":{"required":["c"]}}`},
		{name: "a name that is refused", in: `{"properties":{"a b":{"type":"string"},"c":{}},"required":["a b","c"],"additionalProperties":false}`,
			want: `{"properties":{"c":{}},"required":["c"],"type":"object"}`, words: `argument "a b"`},
		{name: "wider below not is narrower", in: `{"properties":{"a":{"not":{"type":"any","minLength":3}}}}`, want: `{"properties":{"a":{}},"type":"object"}`},
		{name: "wider below oneOf is narrower", in: `{"properties":{"a":{"oneOf":[{"type":"any"},{"type":"string"}]}}}`, want: `{"properties":{"a":{"anyOf":[{},{"type":"string"}]}},"type":"object"}`},
		{name: "what one needs another for", in: `{"properties":{"a":{"not":{"dependentRequired":{"b":["c"]}}}},"dependentRequired":{"a":["b","b"],"b":[1],"c":1}}`,
			want: `{"dependentRequired":{"a":["b"]},"properties":{"a":{"not":{"dependentRequired":{"b":["c"]}}}},"type":"object"}`},
		{name: "the same in older drafts", in: `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"not":{"dependencies":{"b":["c"]}}}},"dependencies":{"a":["b"]}}`,
			want: `{"properties":{"a":{}},"type":"object"}`, words: `must fit this schema too: {"dependencies":{"a":["b"]}}`},
		{name: "wider behind a reference below not is narrower", in: `{"properties":{"a":{"not":{"$ref":"#/$defs/x"}},"b":{"oneOf":[{"$ref":"#/$defs/y"},{"type":"string"}]}},"$defs":{"x":{"allOf":[{"$ref":"#/$defs/y"}]},"y":{"type":"any"}}}`,
			want: `{"$defs":{"x":{"allOf":[{"$ref":"#/$defs/y"}]},"y":{}},"properties":{"a":{},"b":{"anyOf":[{"$ref":"#/$defs/y"},{"type":"string"}]}},"type":"object"}`},
		{name: "a definition below not", in: `{"properties":{"a":{"not":{"$ref":"#/definitions/x"}}},"definitions":{"x":{"type":"string"}}}`,
			want: `{"definitions":{"x":{"type":"string"}},"properties":{"a":{"not":{"$ref":"#/definitions/x"}}},"type":"object"}`},
		{name: "parts with rules of their own", in: `{"allOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"minProperties":2}]}`,
			want: `{"properties":{"a":{},"b":{}},"required":["a"],"type":"object"}`, words: `must fit this schema too: {"minProperties":2,"properties":{"b":{}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, words := Adapt(json.RawMessage(tt.in), tt.inline)
			text, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(text)); diff != "" {
				t.Errorf("Adapt(%s) (-want +got):\n%s", tt.in, diff)
			}
			if !strings.Contains(words, tt.words) || tt.words == "" && words != "" {
				t.Errorf("Adapt(%s) says %q, want %q", tt.in, words, tt.words)
			}
		})
	}
}

// A very large schema is cut short, in little time.
func TestAdaptHostile(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"properties":{"a":{"$ref":"#/$defs/0"}},"$defs":{`)
	for i := range 30 {
		if i > 0 {
			b.WriteString(",")
		}
		n := string(rune('0' + i + 1))
		b.WriteString(`"` + string(rune('0'+i)) + `":{"anyOf":[{"$ref":"#/$defs/` + n + `"},{"$ref":"#/$defs/` + n + `"},{"$ref":"#/$defs/` + n + `"}]}`)
	}
	b.WriteString(`}}`)
	for _, in := range []string{
		b.String(),
		strings.Repeat(`{"allOf":[`, 5000) + strings.Repeat(`]}`, 5000),
		strings.Repeat(`{"properties":{"a":`, 5000) + `{}` + strings.Repeat(`}}`, 5000),
		`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`,
	} {
		for _, inline := range []bool{false, true} {
			got, words := Adapt(json.RawMessage(in), inline)
			text, err := json.Marshal(got)
			if err != nil || len(text) > 1<<20 || len(words) > 3000 {
				t.Errorf("Adapt(%.40s, %v) is of %d bytes, %v; says %d bytes", in, inline, len(text), err, len(words))
			}
		}
	}
}

// Arguments that fit a schema fit what was made of it.
func FuzzAdapt(f *testing.F) {
	for _, s := range []string{
		`{"oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"number"}},"required":["b"]}]}`,
		`{"$ref":"#/$defs/x","$defs":{"x":{"allOf":[{"properties":{"a":{"minimum":1}}},{"not":{"required":["c"]}}]}},"unevaluatedProperties":false}`,
		`{"properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}},"additionalProperties":{"type":"string"},"minProperties":1}`,
		`{"anyOf":[{"properties":{"a":{"enum":[1]}},"additionalProperties":false},{"type":"null"},true],"if":{"required":["a"]},"then":{"required":["b"]}}`,
		`{"properties":{"a":{"not":{"dependentRequired":{"x":["y"]}}}},"dependentRequired":{"a":["b"]}}`,
		`{"properties":{"a":{"oneOf":[{"dependentRequired":{"x":["y"]}},{"required":["x"]}]}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"not":{"dependencies":{"x":["y"]}}}},"dependencies":{"b":["a"]}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"d":{"dependencies":{"x":["y"]}}},"properties":{"a":{"not":{"$ref":"#/definitions/d"}}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"d":{"type":"object"}},"properties":{"a":{"$ref":"#/definitions/d","minProperties":2}}}`,
		`{"$defs":{"d":{"$dynamicRef":"#t"},"t":{"$dynamicAnchor":"t","type":"string"}},"properties":{"a":{"not":{"$ref":"#/$defs/d"}},"b":{"oneOf":[{"$ref":"#/$defs/d"},{"type":"integer"}]}}}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"not":{"$recursiveRef":"#"}}},"required":["b"]}`,
		`{"allOf":[{"properties":{"a":{}},"dependentRequired":{"a":["b"]}},{"minProperties":1,"additionalProperties":false,"properties":{"a":{}}}]}`,
	} {
		for _, v := range []string{`{"a":1}`, `{"b":2}`, `{"a":"x","c":{}}`, `{}`, `{"a":{"x":1}}`, `{"a":{"x":1,"y":2},"b":null}`} {
			f.Add(s, v, false)
			f.Add(s, v, true)
		}
	}
	f.Fuzz(func(t *testing.T, in, value string, inline bool) {
		var object map[string]any
		if len(in) > 2000 || json.Unmarshal([]byte(value), &object) != nil || object == nil {
			return
		}
		original, err := schema.Compile(json.RawMessage(in))
		if err != nil || original.Validate([]byte(value)) != nil {
			return
		}
		got, _ := Adapt(json.RawMessage(in), inline)
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		adapted, err := schema.Compile(text)
		if err != nil {
			t.Fatalf("Adapt(%s) = %s, which is no schema: %v", in, text, err)
		}
		if err := adapted.Validate([]byte(value)); err != nil {
			t.Fatalf("%s fits %s, but not what was made of it, %s: %v", value, in, text, err)
		}
	})
}
