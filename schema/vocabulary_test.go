package schema_test

import (
	"testing"

	"github.com/patchbay-dev/patchbay/schema"
)

// The keywords of 2020-12 that schemas of tools use: each accepts one value and refuses another,
// and the fault names the place. JSON-26-001, JSON-26-002.
func TestVocabulary(t *testing.T) {
	const byKind = `{"if":{"properties":{"kind":{"const":"a"}},"required":["kind"]},
		"then":{"properties":{"n":{"type":"integer"}}},"else":{"properties":{"n":{"type":"string"}}}}`
	tests := []struct{ name, schema, good, bad, want string }{
		{"$ref to $defs", `{"$defs":{"p":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/p"}}}`,
			`{"a":1}`, `{"a":"x"}`, `a: must be an integer, got string`},
		{"$ref beside other keywords", `{"$defs":{"p":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/p","minimum":3}}}`,
			`{"a":3}`, `{"a":2}`, `a: must be at least 3, got 2`},
		{"$ref to a property", `{"properties":{"a":{"type":"object"},"b":{"$ref":"#/properties/a"}}}`,
			`{"b":{}}`, `{"b":[]}`, `b: must be an object, got array`},
		{"$ref with escapes", `{"$defs":{"a/b~c d":{"type":"null"}},"items":{"$ref":"#/$defs/a~1b~0c%20d"}}`,
			`[null]`, `[null,0]`, `[1]: must be null, got number`},
		{"$ref to the root", `{"properties":{"kids":{"items":{"$ref":"#"}}},"additionalProperties":false}`,
			`{"kids":[{"kids":[{}]}]}`, `{"kids":[{},{"kids":[{"x":1}]}]}`, `kids[1].kids[0]: unknown property "x"`},
		{"$anchor", `{"$defs":{"p":{"$anchor":"pos","minimum":0}},"items":{"$ref":"#pos"}}`,
			`[1]`, `[1,-1]`, `[1]: must be at least 0, got -1`},
		{"$id of a part", `{"$id":"https://x.example/root","$defs":{"p":{"$id":"part","type":"string"}},"items":{"$ref":"https://x.example/part"}}`,
			`["a"]`, `[1]`, `[0]: must be a string, got number`},
		{"$dynamicRef", `{"$id":"https://x.example/ints","$ref":"list","$defs":{"ints":{"$dynamicAnchor":"item","type":"integer"},
			"list":{"$id":"list","items":{"$dynamicRef":"#item"},"$defs":{"any":{"$dynamicAnchor":"item"}}}}}`,
			`[1]`, `[1,"x"]`, `[1]: must be an integer, got string`},

		{"allOf", `{"properties":{"v":{"allOf":[{"minimum":1},{"maximum":2}]}}}`, `{"v":2}`, `{"v":3}`, `v: must be at most 2, got 3`},
		{"anyOf", `{"properties":{"v":{"anyOf":[{"type":"string","maxLength":2},{"type":"integer"}]}}}`,
			`{"v":7}`, `{"v":"abc"}`, `v: must have at most 2 characters, got 3`},
		{"oneOf, none", `{"properties":{"v":{"oneOf":[{"multipleOf":3},{"multipleOf":5}]}}}`,
			`{"v":9}`, `{"v":7}`, `v: fits none of 2 alternatives: v: must be a multiple of 3, got 7; or v: must be a multiple of 5, got 7`},
		{"oneOf, two", `{"properties":{"v":{"oneOf":[{"multipleOf":3},{"multipleOf":5}]}}}`,
			`{"v":10}`, `{"v":15}`, `v: fits more than one of the alternatives, must fit exactly one`},
		{"not", `{"properties":{"v":{"not":{"enum":["x"]}}}}`, `{"v":"y"}`, `{"v":"x"}`, `v: is excluded by the schema`},
		{"then", byKind, `{"kind":"a","n":1}`, `{"kind":"a","n":"x"}`, `n: must be an integer, got string`},
		{"else", byKind, `{"kind":"b","n":"x"}`, `{"n":1}`, `n: must be a string, got number`},

		{"properties", `{"properties":{"a":{"properties":{"b c":{"type":"string"}}}}}`, `{"a":{"b c":"","d":1},"e":1}`, `{"a":{"b c":1}}`, `a["b c"]: must be a string, got number`},
		{"property never", `{"properties":{"a":false}}`, `{}`, `{"a":1}`, `a: is not allowed here`},
		{"required", `{"properties":{"o":{"required":["a"]}}}`, `{"o":{"a":null}}`, `{"o":{}}`, `o: missing "a"`},
		{"additionalProperties", `{"properties":{"a":true},"additionalProperties":{"type":"integer"}}`, `{"a":"x","b":1}`, `{"b":"x"}`, `b: must be an integer, got string`},
		{"patternProperties", `{"patternProperties":{"^x-":{"type":"string"}}}`, `{"x-a":"","y":2}`, `{"x-a":1}`, `x-a: must be a string, got number`},
		{"patternProperties and no others", `{"patternProperties":{"^x-":true},"additionalProperties":false}`, `{"x-a":1}`, `{"x-a":1,"y":2}`, `unknown property "y"`},
		{"propertyNames", `{"properties":{"o":{"propertyNames":{"pattern":"^[a-z]+$"}}}}`, `{"o":{"ab":1}}`, `{"o":{"A1":1}}`,
			`o: property name "A1" is not allowed: must match the pattern "^[a-z]+$", got "A1"`},
		{"minProperties", `{"properties":{"o":{"minProperties":2}}}`, `{"o":{"a":1,"b":2}}`, `{"o":{"a":1}}`, `o: must have at least 2 properties, got 1`},
		{"maxProperties", `{"maxProperties":1}`, `{"a":1}`, `{"a":1,"b":2}`, `must have at most 1 property, got 2`},
		{"dependentRequired", `{"properties":{"p":{"dependentRequired":{"card":["name","zip"]}}}}`,
			`{"p":{"zip":1}}`, `{"p":{"card":1,"zip":2}}`, `p: missing "name", which "card" needs`},
		{"dependentSchemas", `{"dependentSchemas":{"card":{"properties":{"zip":{"type":"string"}},"required":["zip"]}}}`,
			`{"zip":2}`, `{"card":1,"zip":2}`, `zip: must be a string, got number`},
		{"unevaluatedProperties", `{"properties":{"o":{"allOf":[{"properties":{"a":true}}],"if":{"required":["k"]},"then":{"properties":{"k":true}},"unevaluatedProperties":false}}}`,
			`{"o":{"a":1,"k":2}}`, `{"o":{"a":1,"k":1,"z":1}}`, `o: unknown property "z"`},
		{"unevaluatedProperties with a schema", `{"properties":{"a":true},"unevaluatedProperties":{"type":"integer"}}`,
			`{"a":"x","b":1}`, `{"a":"x","b":"y"}`, `b: must be an integer, got string`},

		{"prefixItems", `{"prefixItems":[{"type":"string"},{"type":"integer"}]}`, `["a",1,null]`, `["a","b"]`, `[1]: must be an integer, got string`},
		{"items after prefixItems", `{"properties":{"l":{"prefixItems":[true],"items":{"type":"boolean"}}}}`, `{"l":["a",true]}`, `{"l":["a",true,3]}`, `l[2]: must be true or false, got number`},
		{"contains", `{"properties":{"l":{"contains":{"type":"integer"}}}}`, `{"l":["a",1]}`, `{"l":["a"]}`, `l: has no item of the required kind: l[0]: must be an integer, got string`},
		{"minContains", `{"properties":{"l":{"contains":{"const":1},"minContains":2}}}`, `{"l":[1,2,1]}`, `{"l":[1,2]}`, `l: must have at least 2 items of the required kind, got 1`},
		{"maxContains", `{"properties":{"l":{"contains":{"const":1},"maxContains":1}}}`, `{"l":[1,2]}`, `{"l":[1,1]}`, `l: must have at most 1 item of the required kind, got 2`},
		{"minContains 0", `{"contains":{"const":1},"minContains":0,"maxItems":1}`, `[]`, `[1,1]`, `must have at most 1 item, got 2`},
		{"unevaluatedItems", `{"properties":{"l":{"prefixItems":[true],"anyOf":[{"prefixItems":[true,{"const":2}]},true],"unevaluatedItems":false}}}`,
			`{"l":[1,2]}`, `{"l":[1,3]}`, `l[1]: is not allowed here`},
		{"unevaluatedItems after contains", `{"contains":{"type":"string"},"unevaluatedItems":{"type":"integer"}}`, `["a",1]`, `["a",1,null]`, `[2]: must be an integer, got null`},
		{"uniqueItems", `{"properties":{"l":{"uniqueItems":true}}}`, `{"l":[1,"1",[1]]}`, `{"l":[{"a":1,"b":2},0,{"b":2,"a":1.0}]}`, `l: items must differ, but item 2 repeats item 0`},

		{"const", `{"properties":{"c":{"const":{"a":[1,2.0],"b":null}}}}`, `{"c":{"b":null,"a":[1.0,2]}}`, `{"c":{"b":null,"a":[2,1]}}`,
			`c: must be {"a":[1,2.0],"b":null}, got {"b":null,"a":[2,1]}`},
		{"const null", `{"properties":{"c":{"const":null}}}`, `{"c":null}`, `{"c":0}`, `c: must be null, got 0`},
		{"enum of objects", `{"properties":{"e":{"enum":[{"x":1},[2],"s"]}}}`, `{"e":{"x":1.0}}`, `{"e":{"x":2}}`, `e: must be one of {"x":1}, [2], "s", got {"x":2}`},
		{"multipleOf with decimals", `{"properties":{"m":{"multipleOf":0.01}}}`, `{"m":4.35}`, `{"m":19.995}`, `m: must be a multiple of 0.01, got 19.995`},
		{"multipleOf and exponents", `{"multipleOf":1e-8}`, `12391239123`, `1e-9`, `must be a multiple of 1e-8, got 1e-9`},
		{"exclusive bounds", `{"properties":{"n":{"exclusiveMinimum":0,"exclusiveMaximum":1}}}`, `{"n":0.5}`, `{"n":0}`, `n: must be more than 0, got 0`},
		{"length in characters", `{"maxLength":2}`, `"😀😀"`, `"abc"`, `must have at most 2 characters, got 3`},
		{"pattern anywhere", `{"properties":{"s":{"pattern":"b+"}}}`, `{"s":"abbc"}`, `{"s":"ac"}`, `s: must match the pattern "b+", got "ac"`},
		{"type list", `{"properties":{"t":{"type":["object","null"],"required":["a"]}}}`, `{"t":null}`, `{"t":{}}`, `t: missing "a"`},

		// Annotations in 2020-12: they refuse nothing themselves.
		{"format", `{"properties":{"d":{"format":"date-time"},"m":{"format":"email"},"u":{"format":"no-such","type":"string"}}}`,
			`{"d":"x","m":"y","u":"z"}`, `{"u":1}`, `u: must be a string, got number`},
		{"content", `{"properties":{"s":{"contentEncoding":"base64","contentMediaType":"application/json","minLength":1}}}`,
			`{"s":"*"}`, `{"s":""}`, `s: must have at least 1 character, got 0`},
		{"default, examples, readOnly", `{"properties":{"a":{"type":"string","default":5,"examples":[1],"readOnly":true,"deprecated":true,"$comment":"x","x-mcp-header":"A"}},"required":["a"]}`,
			`{"a":""}`, `{}`, `missing "a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := schema.Compile([]byte(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Validate([]byte(tt.good)); err != nil {
				t.Errorf("Validate(%s) = %v, want no fault", tt.good, err)
			}
			if err := v.Validate([]byte(tt.bad)); err == nil || err.Error() != tt.want {
				t.Errorf("Validate(%s)\n got %v\nwant %s", tt.bad, err, tt.want)
			}
		})
	}
}
