package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Trap 17, for schemas of others: null means absence where the schema does not accept null.
func TestFit(t *testing.T) {
	const deep = `{"type":"object","properties":{"n":{"type":["integer","null"]},"s":{"type":"string"},"e":{"enum":["a","b"]},"any":{},
		"list":{"type":"array","items":{"$ref":"#/$defs/o"}},"o":{"$ref":"#/$defs/o"},"strings":{"type":"array","items":{"type":"string"}},
		"one":{"anyOf":[{"type":"string"},{"type":"integer"}]},"maybe":{"anyOf":[{"type":"string"},{"type":"null"}]}},
		"required":["s"],"$defs":{"o":{"type":"object","properties":{"x":{"type":"boolean"},"odd name":{"$ref":"#/$defs/o"}}}}}`
	const same = "same"
	tests := []struct{ name, schema, in, want, fault string }{
		{"nothing to leave out", deep, `{"s": "x", "n": null, "any":null, "maybe":null, "unknown":null}`, same, ""},
		{"first", deep, `{"e":null,"s":"x"}`, `{"s":"x"}`, ""},
		{"last", deep, `{"s":"x","e":null}`, `{"s":"x"}`, ""},
		{"several, with space", deep, `{ "e" : null , "o":null, "s":"x" , "list" : null, "one":null }`, `{ "s":"x"  }`, ""},
		{"every level", deep, `{"s":"x","o":{"x":null,"odd name":{"odd name":null,"x":null}},"list":[{"x":null,"y":null},{"x":true}]}`,
			`{"s":"x","o":{"odd name":{}},"list":[{"y":null},{"x":true}]}`, ""},
		{"text stays as written", deep, `{"s":"\u00e6 , \"e\":null","\u0065":null}`, `{"s":"\u00e6 , \"e\":null"}`, ""},
		{"required", deep, `{"s":null,"e":null}`, "", `missing "s"`},
		{"an item", deep, `{"s":"x","strings":["a",null]}`, "", "strings[1]: must be a string, got null"},
		{"another fault", deep, `{"s":1,"e":null}`, "", "s: must be a string, got number"},
		{"the root", deep, `null`, "", "must be an object, got null"},
		{"unknown and forbidden", `{"properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{"a":null,"b":null}`, "", `unknown property "b"`},
		{"all of", `{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"minLength":1}}}]}`, `{"a":null}`, `{}`, ""},
		{"pattern", `{"patternProperties":{"^x":{"type":"string"}}}`, `{"x1":null,"y":null}`, `{"y":null}`, ""},
		{"map", `{"additionalProperties":{"type":"string"}}`, `{"a":null,"b":"c"}`, `{"b":"c"}`, ""},
		{"needed by another", `{"properties":{"a":{"type":"string"}},"dependentRequired":{"a":["b"]}}`, `{"a":null}`, `{}`, ""},
		{"meant alternative", `{"oneOf":[{"properties":{"k":{"const":"a"},"x":{"type":"string"}}},{"properties":{"k":{"const":"b"},"y":{"type":"integer"}}}]}`, `{"k":"b","y":null}`, `{"k":"b"}`, ""},
		{"too few left", `{"minProperties":1,"properties":{"a":{"type":"string"}}}`, `{"a":null}`, "", "must have at least 1 property, got 0"},
		{"not JSON", deep, `{"s":`, "", "invalid JSON at byte 5: unexpected end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check, err := Compile(json.RawMessage(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			before := tt.in
			in := []byte(tt.in)
			got, err := check.Fit(in)
			if tt.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fault) || got != nil {
					t.Errorf("got %s, %v, want the fault %q", got, err, tt.fault)
				}
				return
			}
			if tt.want == same {
				tt.want = tt.in
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
			if string(in) != before {
				t.Errorf("the input became %s", in)
			}
			if err := check.Validate(got); err != nil {
				t.Errorf("what fits does not: %v", err)
			}
		})
	}
}

// One round finds a part of many; the next ones find the rest.
func TestFitMany(t *testing.T) {
	var in strings.Builder
	in.WriteString(`{"o":{"k":"a"`)
	for i := range 1500 {
		fmt.Fprintf(&in, `,"p%d":null`, i)
	}
	in.WriteString(`}}`)
	check, err := Compile(json.RawMessage(`{"properties":{"o":{"anyOf":[{"type":"string"},{"type":"object","additionalProperties":{"type":"string"}}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := check.Fit([]byte(in.String())); err != nil || string(got) != `{"o":{"k":"a"}}` {
		t.Errorf("got %.100s, %v", got, err)
	}
}
