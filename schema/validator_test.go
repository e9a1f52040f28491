package schema

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	tests := []struct{ name, schema, in, want string }{
		{"as Decode words it", `{"type":"object","properties":{"a":{"type":"integer","minimum":0},"b":{"type":"array","items":{"type":"string"}}},"required":["a","c"],"additionalProperties":false}`,
			`{"a":-3,"b":["x","y",1],"d e":1}`, `missing "c"; unknown property "d e"; a: must be at least 0, got -3; b[2]: must be a string, got number`},
		{"fraction", `{"properties":{"a":{"type":"integer"}}}`, `{"a":1.5}`, `a: must be an integer, got 1.5`},
		{"integer as float", `{"type":"integer"}`, `1.0`, ``},
		{"integer with exponent", `{"type":"integer"}`, `1e2`, ``},
		{"big integers are exact", `{"maximum":9007199254740992}`, `9007199254740993`, `must be at most 9007199254740992, got 9007199254740993`},
		{"big constants are exact", `{"const":9007199254740993}`, `9007199254740992`, `must be 9007199254740993, got 9007199254740992`},
		{"names that are numbers", `{"properties":{"0":{"type":"string"}}}`, `{"0":1}`, `0: must be a string, got number`},
		{"odd names", `{"additionalProperties":{"type":"string"}}`, `{"a b":1,"":2}`, `[""]: must be a string, got number; ["a b"]: must be a string, got number`},
		{"types", `{"type":["string","null"]}`, `1`, `must be a string or null, got number`},
		{"boolean", `{"type":"boolean"}`, `"x"`, `must be true or false, got string`},
		{"enum", `{"enum":["a",1,null]}`, `"b"`, `must be one of "a", 1, null, got "b"`},
		{"sizes", `{"properties":{"s":{"minLength":2},"a":{"maxItems":1},"o":{"minProperties":2}}}`, `{"s":"æ","a":[1,2],"o":{}}`,
			`a: must have at most 1 item, got 2; o: must have at least 2 properties, got 0; s: must have at least 2 characters, got 1`},
		{"pattern with unicode escape", `{"pattern":"^\\u00e6$"}`, `"æ"`, ``},
		{"unique", `{"uniqueItems":true}`, `[1,{"a":1,"b":2},1.0]`, `items must differ, but item 2 repeats item 0`},
		{"multiple", `{"multipleOf":0.1}`, `0.35`, `must be a multiple of 0.1, got 0.35`},
		{"nullable", `{"anyOf":[{"$ref":"#/$defs/p"},{"type":"null"}],"$defs":{"p":{"type":"object","properties":{"a":{"type":"string"}}}}}`, `{"a":1}`, `a: must be a string, got number`},
		{"no alternative by type", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, `must be a string or null, got number`},
		{"tagged union", `{"oneOf":[{"properties":{"k":{"const":"a"},"x":{"type":"string"}}},{"properties":{"k":{"const":"b"},"y":{"type":"integer"}}}]}`, `{"k":"b","y":"z"}`, `y: must be an integer, got string`},
		{"no alternative", `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, `fits none of 2 alternatives: missing "a"; or missing "b"`},
		{"two alternatives", `{"oneOf":[{"type":"integer"},{"minimum":1}]}`, `5`, `fits more than one of the alternatives, must fit exactly one`},
		{"not", `{"not":{"type":"string"}}`, `"x"`, `is excluded by the schema`},
		{"unevaluated", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, `unknown property "b"`},
		{"dependent", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `missing "b", which "a" needs`},
		{"property names", `{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `property name "ab" is not allowed: must have at most 1 character, got 2`},
		{"conditional", `{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}}`, `{"a":1}`, `missing "b"`},
		{"false", `false`, `1`, `is not allowed here`},
		{"not JSON", `true`, `{"a":1,"a":2}`, `invalid JSON at byte 7: second member with the same name`},
		{"format is an annotation", `{"format":"email"}`, `"x"`, ``},
		{"huge exponent of zero", `{"maximum":1}`, `0e10000000000000000000`, `is too large a number to check`},
		{"huge exponents", `{"properties":{"a":{"minimum":0}}}`, `{"a":1e999999999}`, `a: is too large a number to check`},
		{"dynamic reference", `{"$id":"http://x.example/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,
			"$defs":{"tree":{"$id":"tree","$dynamicAnchor":"node","properties":{"v":true,"kids":{"type":"array","items":{"$dynamicRef":"#node"}}}}}}`,
			`{"v":1,"kids":[{"v":1,"vv":2}]}`, `kids[0]: unknown property "vv"`},

		// JSON-26-001, JSON-26-002: 2020-12 without $schema.
		{"prefixItems", `{"prefixItems":[{"type":"string"}],"items":false}`, `["a",1]`, `[1]: is not allowed here`},
		// JSON-26-003, JSON-26-005: by the declared dialect.
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false}`, `["a",1]`, `has 1 item too many`},
		{"draft 7 formats", `{"$schema":"http://json-schema.org/draft-07/schema","format":"email"}`, `"x"`, `must be an email address, got "x"`},
		{"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, `1`, `must be more than 1, got 1`},
		{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{"type":"string"}]}`, `[1]`, `[0]: must be a string, got number`},
		{"draft 7 hides what is beside a reference", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":true},"properties":{"a":{"$ref":"#/definitions/a","type":"null"}}}`, `{"a":1}`, ``},
		{"draft 7 in 2020-12", `{"$defs":{"old":{"$id":"http://x.example/old","$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}},"$ref":"http://x.example/old"}`, `[1]`, `[0]: must be a string, got number`},
		{"other formats of draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"format":"json-pointer"},{"format":"regex"},{"format":"uri-reference"}]}`, `["a","(",":"]`,
			`[0]: must be a JSON pointer such as /a/0, got "a"; [1]: must be of the format "regex", got "("; [2]: must be a URI or a relative reference, got ":"`},

		{"a published schema", `{"properties":{"s":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`, `{"s":{"properties":{"a":{"type":"strnig"}},"minimum":"1"}}`,
			`s.minimum: must be a number, got string; s.properties.a.type: must be one of "array", "boolean", "integer", "null", "number", "object", "string", got "strnig"`},
		{"a schema of a schema", `{"$ref":"http://json-schema.org/draft-07/schema#"}`, `{"$ref":"#/nowhere","items":[true,{"$id":"x"}],"pattern":"^a","x":[]}`, ``},
		{"a schema of another dialect", `{"$ref":"http://json-schema.org/draft-04/schema"}`, `true`, `must be an object, got boolean`},
		{"unused references", `{"$defs":{"a":{"$ref":"http://x.example/elsewhere"}},"type":"null"}`, `1`, `must be null, got number`},
		{"reference into what is no keyword", `{"x":{"y":[{"type":"string"}]},"$ref":"#/x/y/0"}`, `1`, `must be a string, got number`},
		{"a reference that comes back", `{"$id":"http://x.example/r","$dynamicAnchor":"a","$ref":"t","$defs":{"t":{"$id":"t","$dynamicRef":"#a","$defs":{"d":{"$dynamicAnchor":"a"}}}}}`, `1`,
			`cannot be checked: the schema refers to itself without end`},
		{"alternatives in alternatives", `{"anyOf":[{"anyOf":[{"type":"string"},{"type":"null"}]},{"type":"integer"}]}`, `{}`, `must be a string or an integer or null, got object`},
		{"odd white space", `{"const":1}`, "{ \"a b\" : [ 1 ,\n \"\\\" \" ] }", `must be 1, got {"a b":[1,"\" "]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := Compile([]byte(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := v.Validate([]byte(tt.in)); err != nil {
				var invalid *ValidationError
				if !errors.As(err, &invalid) {
					t.Fatalf("error %T %v, want a ValidationError", err, err)
				}
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Validate(%s)\n got %s\nwant %s", tt.in, got, tt.want)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"null", `null`, "a schema must be an object or a boolean"}, // TOOL-26-009
		{"array", `[]`, "a schema must be an object or a boolean"},
		{"nothing", ``, "invalid JSON at byte 0"},
		{"not JSON", `{"type":"string",}`, "invalid JSON at byte 17"},
		{"not a schema", `{"properties":{"a":{"type":"strnig"}}}`, `not a valid schema: properties.a.type: must be one of "array"`},
		{"unknown dialect", `{"$schema":"http://example.com/x"}`, `the dialect "http://example.com/x" is not supported`}, // JSON-26-006
		{"dialect of the wrong type", `{"$schema":7}`, "$schema must be a string"},
		{"unknown dialect inside", `{"$defs":{"a":{"$id":"http://x.example/a","$schema":"http://example.com/x"}}}`, `"http://example.com/x"`},
		{"relative reference", `{"$ref":"other.json"}`, `the reference "other.json" leads out of the schema`}, // JSON-26-011
		{"file", `{"items":{"$ref":"file:///etc/passwd"}}`, `the reference "file:///etc/passwd" leads out`},
		{"dangling", `{"$ref":"#/$defs/none"}`, `the reference "#/$defs/none" leads to nothing in the schema`},
		{"dangling anchor", `{"$ref":"#none"}`, `the reference "#none" leads to nothing in the schema`},
		{"dangling item", `{"allOf":[{"$ref":"#/allOf/01"},{}]}`, `the reference "#/allOf/01" leads to nothing`},
		{"part of a published schema", `{"$ref":"http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger"}`, `leads out of the schema`},
		{"reference to no schema", `{"$ref":"#/x","x":{"type":1}}`, `not a valid schema: x.type: must be a string or an array, got number`},
		{"twice the id", `{"$defs":{"a":{"$id":"http://x.example/a"},"b":{"$id":"http://x.example/a"}}}`, `two subschemas have the $id "http://x.example/a"`},
		{"twice the anchor", `{"$defs":{"a":{"$anchor":"a"},"b":{"$anchor":"a"}}}`, `two subschemas have the anchor "a"`},
		{"several faults", `{"required":["a","a"],"minItems":-1,"allOf":[],"multipleOf":0,"patternProperties":{"[":1}}`,
			`not a valid schema: allOf: must have at least 1 item, got 0; minItems: must be at least 0, got -1; multipleOf: must be more than 0, got 0; ` +
				`patternProperties["["]: must be of the format "regex", got "["; patternProperties["["]: must be true or false or an object, got number; ` +
				`required: items must differ, but item 1 repeats item 0`},
		{"bound of draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":true}`, `missing "minimum", which "exclusiveMinimum" needs`},
		{"lookahead", `{"pattern":"(?=a)"}`, `pattern: must be of the format "regex", got "(?=a)"`},
		{"loop", `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`, "refers to itself"},
		{"huge number", `{"minimum":1e999999999}`, "a number in the schema is too large"},
		{"deep", strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200), "nested deeper than 128"},                                                                      // JSON-26-012
		{"many", `{"anyOf":[` + strings.Repeat(`{},`, 5000) + `{}]}`, "5002 subschemas, at most 5000 are read"},                                                                   // JSON-26-012
		{"long", `{"description":"` + strings.Repeat("x", 1<<20) + `"}`, "at most 1048576 are read"},                                                                              // JSON-26-012
		{"many steps of patterns", `{"patternProperties":{` + strings.Repeat(`"x{999}":true,`, 1) + manyPatterns(200) + `"a":true}}`, "the patterns in the schema are too large"}, // JSON-26-012
		{"long ways", `{"x":[` + strings.Repeat(`true,`, 100_000) + `true],"allOf":[` + strings.Repeat(`{"$ref":"#/x/99999"},`, 3000) + `true]}`, "take too long to follow"},      // JSON-26-012
		{"long URIs", nestedIDs(9, 500), "of at most 4096 bytes"},                                                                                                                 // JSON-26-012
		{"chain", chain(300, func(i int) string { return fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1) }), "more than 256 subschemas lead to each other"},                            // JSON-26-012
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile([]byte(tt.schema))
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 1000 {
				t.Errorf("error %.300v, want one with %q", err, tt.want)
			}
		})
	}
}

// manyPatterns returns n members, each named by another pattern of 900 steps.
func manyPatterns(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%dx{900}":true,`, i)
	}
	return b.String()
}

// nestedIDs returns n schemas inside each other, each in a folder of its own.
func nestedIDs(n, length int) string {
	return strings.Repeat(`{"$id":"`+strings.Repeat("x", length)+`/","items":`, n) + `{}` + strings.Repeat(`}`, n)
}

// chain returns a schema with n definitions d0, d1, ... and a string at the end.
func chain(n int, def func(i int) string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":%s,`, i, def(i))
	}
	fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, n)
	return b.String()
}

// JSON-26-008, JSON-26-009, TOOL-26-033: nothing is fetched, whatever the reference.
func TestCompileFetchesNothing(t *testing.T) {
	hits := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits++
		fmt.Fprint(w, `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`)
	}))
	defer srv.Close()
	for _, schema := range []string{
		`{"$ref":"` + srv.URL + `/a"}`,
		`{"properties":{"a":{"$ref":"` + srv.URL + `/a#/b"}}}`,
		`{"$id":"` + srv.URL + `/root","properties":{"a":{"$ref":"b"}}}`,
		`{"$dynamicRef":"` + srv.URL + `/a"}`,
		`{"$schema":"` + srv.URL + `/dialect"}`,
		`{"$defs":{"a":{"$id":"x:y","$schema":"` + srv.URL + `/dialect"}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"$ref":"` + srv.URL + `/a"}},"$ref":"#/definitions/a"}`,
	} {
		if _, err := Compile([]byte(schema)); err == nil || !strings.Contains(err.Error(), srv.URL) {
			t.Errorf("Compile(%s) error = %v, want one that names the reference", schema, err)
		}
	}
	if hits > 0 {
		t.Errorf("the server was asked %d times", hits)
	}
}

// many returns n members of an object, with a comma after each.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"n%d":1,`, i)
	}
	return b.String()
}

// JSON-26-012: schemas that ask for exponential work end soon, with an error.
func TestValidateBoundsWork(t *testing.T) {
	twice := func(keyword string) string {
		return chain(60, func(i int) string {
			return fmt.Sprintf(`{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%[2]d"}]}`, keyword, i+1)
		})
	}
	nested := strings.Repeat(`{"c":`, 100) + `1` + strings.Repeat(`}`, 100)
	long := `[` + strings.Repeat(`"xxxxxxxxxxxxxxxxxxxxxxxxxxx",`, 5000) + `1]`
	tests := []struct{ name, schema, in string }{
		{"anyOf", twice("anyOf"), `1`},
		{"allOf under not", strings.Replace(twice("allOf"), `"$ref":"#/$defs/d0"`, `"not":{"$ref":"#/$defs/d0"}`, 1), `"x"`},
		{"by depth of the value", `{"$ref":"#/$defs/n","$defs":{"n":{"allOf":[{"properties":{"c":{"$ref":"#/$defs/n"}}},{"properties":{"c":{"$ref":"#/$defs/n"}}}]}}}`, nested},
		{"by depth, dynamic", `{"$id":"http://x.example/r","$ref":"t","$defs":{
			"bomb":{"$dynamicAnchor":"node","allOf":[{"properties":{"c":{"$ref":"#/$defs/bomb"}}},{"properties":{"c":{"$ref":"#/$defs/bomb"}}}]},
			"t":{"$id":"t","$defs":{"d":{"$dynamicAnchor":"node"}},"properties":{"c":{"$dynamicRef":"#node"}}}}}`, nested},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"allOf":[{"properties":{"c":{"$ref":"#/definitions/n"}}},{"properties":{"c":{"$ref":"#/definitions/n"}}}]}},"allOf":[{"$ref":"#/definitions/n"}]}`, nested},
		{"patterns", `{"items":{"allOf":[` + strings.Repeat(`{"pattern":"(x+x+)+x"},`, 1500) + `true]}}`, long},
		{"uniqueItems of large values", `{"anyOf":[` + strings.Repeat(`{"uniqueItems":true,"not":true},`, 3000) + `false]}`, `[` + strings.Repeat(`1,`, 2000) + `"x"]`},
		{"patterns of many steps", `{"items":{"pattern":"^(x{0,900}y?){1,1}(a|x{0,99})*$"}}`, `["` + strings.Repeat("x", 60_000) + `","` + strings.Repeat("x", 60_000) + `"]`},
		{"unevaluated", `{"allOf":[` + strings.Repeat(`{"properties":{"a":true}},`, 2000) + `true],"unevaluatedProperties":false}`, `{` + many(10_000) + `"a":1}`},
		{"names", `{"propertyNames":{"allOf":[` + strings.Repeat(`{"minLength":1},`, 4000) + `true]}}`, `{` + many(10_000) + `"a":1}`},
		{"schemas of schemas", `{"items":{"allOf":[` + strings.Repeat(`{"$ref":"http://json-schema.org/draft-07/schema#"},`, 4000) + `true]}}`, `[` + strings.Repeat(`{"properties":{"a":{},"b":{},"c":{}}},`, 5000) + `1]`},
		{"sums of digits", `{"items":{"allOf":[` + strings.Repeat(`{"multipleOf":1e-1999},`, 4000) + `true]}}`, `[` + strings.Repeat(`1e-1999,`, 5000) + `1]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := Compile([]byte(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			err = v.Validate([]byte(tt.in))
			took := time.Since(start)
			if err == nil || !strings.Contains(err.Error(), errWork.Error()) {
				t.Errorf("error %.300v, want %q", err, errWork)
			}
			// Half a second alone on a slow machine; more when others run.
			if took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			t.Logf("given up after %v", took)
		})
	}
}

// Large values against plain schemas are within the budget.
func TestValidateLargeValues(t *testing.T) {
	v, err := Compile([]byte(`{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]},"$defs":{
		"a":{"type":"object","properties":{"kind":{"const":"a"},"n":{"type":"integer","enum":[1,2,3,4,5,6,7,8,9,10]}},"required":["kind"],"additionalProperties":false},
		"b":{"type":"object","properties":{"kind":{"const":"b"},"s":{"type":"string","pattern":"^x"}},"required":["kind"],"additionalProperties":false}}}`))
	if err != nil {
		t.Fatal(err)
	}
	data := `[` + strings.Repeat(`{"kind":"a","n":10},{"kind":"b","s":"xyz"},`, 10_000) + `{"kind":"b"}]`
	if err := v.Validate([]byte(data)); err != nil {
		t.Errorf("%d bytes: %v", len(data), err)
	}
}

// A Validator serves several goroutines at once, and a validation that is given up does not
// affect the others.
func TestValidateConcurrently(t *testing.T) {
	v, err := Compile([]byte(`{"$ref":"#/$defs/n","$defs":{"n":{"allOf":[{"properties":{"c":{"$ref":"#/$defs/n"}}},{"properties":{"c":{"$ref":"#/$defs/n"}}}],"type":["object","number"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	heavy := strings.Repeat(`{"c":`, 100) + `1` + strings.Repeat(`}`, 100)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 3 {
				if i%4 == 0 {
					if err := v.Validate([]byte(heavy)); err == nil || err.Error() != errWork.Error() {
						t.Errorf("heavy: %v", err)
					}
				}
				if err := v.Validate([]byte(`{"c":{"c":1}}`)); err != nil {
					t.Errorf("light: %v", err)
				}
				if err := v.Validate([]byte(`{"c":{"c":"x"}}`)); err == nil || err.Error() != "c.c: must be a number or an object, got string" {
					t.Errorf("wrong: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzCompile: a schema that compiles validates without a panic, and a value either fits or has
// faults.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"enum":[1,"a"]}}}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"anyOf":[{"type":"string"},{"type":"null"}],"unevaluatedProperties":false}`), []byte(`[null]`))
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]},"if":true,"then":{"propertyNames":{"pattern":"^a"}}}`), []byte(`{"a":1e400}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"integer","minimum":-1.5,"maxLength":10,"enum":["a",1,null]}},"required":["a"],"additionalProperties":false}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"$dynamicRef":"#a","$defs":{"b":{"$dynamicAnchor":"a","contains":{"multipleOf":0.1},"minContains":2}}}`), []byte(`[0.2,-0]`))
	f.Fuzz(func(t *testing.T, schema, data []byte) {
		v, err := Compile(schema)
		if err != nil {
			if v != nil {
				t.Fatalf("Compile(%q) returned both a Validator and %v", schema, err)
			}
			return
		}
		err = v.Validate(data)
		var invalid *ValidationError
		if err != nil && (!errors.As(err, &invalid) || len(invalid.Faults) == 0) {
			t.Fatalf("Compile(%q).Validate(%q) = %v, want a ValidationError with faults", schema, data, err)
		}
		if err != nil && strings.Contains(err.Error(), unexplained) {
			t.Fatalf("Compile(%q).Validate(%q) cannot say why not", schema, data)
		}
		if again := v.Validate(data); fmt.Sprint(again) != fmt.Sprint(err) {
			t.Fatalf("Validate(%q) says %v and then %v", data, err, again)
		}
		if form, err := FormOf(schema); err == nil {
			for i := range form.Fields {
				if value, err := form.Fields[i].Parse(string(data)); err == nil && form.Fields[i].problem(value) != "" {
					t.Fatalf("field %q of %q took %q as %s, which does not fit", form.Fields[i].Name, schema, data, value)
				}
			}
		}
	})
}
