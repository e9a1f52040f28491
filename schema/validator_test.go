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
		{"not", `{"not":{"type":"string"}}`, `"x"`, `is what the schema excludes`},
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
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false}`, `["a",1]`, `has 1 items too many`},
		{"draft 7 formats", `{"$schema":"http://json-schema.org/draft-07/schema","format":"email"}`, `"x"`, `must be an email address, got "x"`},
		{"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, `1`, `must be more than 1, got 1`},
		{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{"type":"string"}]}`, `[1]`, `[0]: must be a string, got number`},
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
		{"dangling", `{"$ref":"#/$defs/none"}`, `#/$defs/none`},
		{"lookahead", `{"pattern":"(?=a)"}`, `pattern: must be of the format "regex", got "(?=a)"`},
		{"loop", `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`, "refers to itself"},
		{"huge number", `{"minimum":1e999999999}`, "a number in the schema is too large"},
		{"deep", strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200), "nested deeper than 128"},                                           // JSON-26-012
		{"many", `{"anyOf":[` + strings.Repeat(`{},`, 5000) + `{}]}`, "5002 subschemas, at most 5000 are read"},                                        // JSON-26-012
		{"long", `{"description":"` + strings.Repeat("x", 1<<20) + `"}`, "at most 1048576 are read"},                                                   // JSON-26-012
		{"chain", chain(300, func(i int) string { return fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1) }), "more than 256 subschemas lead to each other"}, // JSON-26-012
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

// JSON-26-012: schemas that ask for exponential work end soon, with an error.
func TestValidateBoundsWork(t *testing.T) {
	twice := func(keyword string) string {
		return chain(60, func(i int) string {
			return fmt.Sprintf(`{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%[2]d"}]}`, keyword, i+1)
		})
	}
	nested := strings.Repeat(`{"c":`, 100) + `1` + strings.Repeat(`}`, 100)
	long := `[` + strings.Repeat(`"xxxxxxxxxxxxxxxxxxxxxxxxxxx",`, 5000) + `1]`
	var values strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&values, `[[1,2,3,4,5,6,7,8,9,%d]],`, i)
	}
	tests := []struct{ name, schema, in string }{
		{"anyOf", twice("anyOf"), `1`},
		{"allOf under not", strings.Replace(twice("allOf"), `"$ref":"#/$defs/d0"`, `"not":{"$ref":"#/$defs/d0"}`, 1), `"x"`},
		{"by depth of the value", `{"$ref":"#/$defs/n","$defs":{"n":{"allOf":[{"properties":{"c":{"$ref":"#/$defs/n"}}},{"properties":{"c":{"$ref":"#/$defs/n"}}}]}}}`, nested},
		{"by depth, dynamic", `{"$id":"http://x.example/r","$ref":"t","$defs":{
			"bomb":{"$dynamicAnchor":"node","allOf":[{"properties":{"c":{"$ref":"#/$defs/bomb"}}},{"properties":{"c":{"$ref":"#/$defs/bomb"}}}]},
			"t":{"$id":"t","$defs":{"d":{"$dynamicAnchor":"node"}},"properties":{"c":{"$dynamicRef":"#node"}}}}}`, nested},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"allOf":[{"properties":{"c":{"$ref":"#/definitions/n"}}},{"properties":{"c":{"$ref":"#/definitions/n"}}}]}},"allOf":[{"$ref":"#/definitions/n"}]}`, nested},
		{"patterns", `{"items":{"allOf":[` + strings.Repeat(`{"pattern":"(x+x+)+y"},`, 1500) + `true]}}`, long},
		{"enum of large values", `{"items":{"enum":[` + strings.TrimSuffix(values.String(), ",") + `]}}`, `[` + strings.Repeat(`[[1,2,3,4,5,6,7,8,9,"x"]],`, 5000) + `1]`},
		{"uniqueItems of large values", `{"anyOf":[` + strings.Repeat(`{"uniqueItems":true,"maxItems":1},`, 3000) + `false]}`, `[` + strings.Repeat(`[`+strings.Repeat(`1,`, 2000)+`"x"],`, 19) + `2]`},
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

// A Validator serves many at once, and one that is given up harms no other.
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

// A schema is compiled when it is first used if a glance shows that it is valid,
// and only then.
func TestPlain(t *testing.T) {
	tests := []struct {
		schema string
		want   bool
	}{
		{`{"type":"object","properties":{"message":{"type":"string","description":"what"}},"required":["message"],"additionalProperties":false}`, true},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"$ref":{"x-mcp-header":"Ref","type":"string"}}}`, true},
		{`{"anyOf":[{"type":"integer","minimum":-1.5,"maxLength":10},{"enum":["a",1,null]},true]}`, true},
		{`{"items":{"const":null,"uniqueItems":true,"examples":[]}}`, true},
		{`{"$schema":"http://json-schema.org/draft-07/schema#"}`, false},
		{`{"$ref":"#"}`, false},
		{`{"pattern":"^a"}`, false},
		{`{"properties":{"a":{"$id":"x"}}}`, false},
		{`{"properties":[]}`, false},
		{`{"type":"strnig"}`, false},
		{`{"type":["string","null"]}`, true},
		{`{"type":["string","string"]}`, false},
		{`{"type":["string","strnig"]}`, false},
		{`{"type":[]}`, false},
		{`{"required":["a","a"]}`, false},
		{`{"required":[1]}`, false},
		{`{"minLength":-1}`, false},
		{`{"minLength":""}`, false},
		{`{"maximum":1e999999999}`, false},
		{`{"maximum":"1"}`, false},
		{`{"enum":1}`, false},
		{`{"default":{"a":1}}`, false},
		{`{"anyOf":[]}`, false},
		{`{"anyOf":{}}`, false},
		{`{"title":1}`, false},
		{`{"a":1,"a":1}`, false},
		{`{"unknown":1}`, false},
		{`{"anyOf":[` + strings.Repeat(`{},`, 5000) + `{}]}`, false},
		{`[]`, false},
		{``, false},
	}
	for _, tt := range tests {
		if got := plain([]byte(tt.schema)); got != tt.want {
			t.Errorf("plain(%.200s) = %v, want %v", tt.schema, got, tt.want)
		}
		if v, err := Compile([]byte(tt.schema)); err == nil && (v.made.Load() == 0) != tt.want {
			t.Errorf("Compile(%.200s) has compiled %d times", tt.schema, v.made.Load())
		}
		if _, err := (&Validator{raw: []byte(tt.schema)}).compile(); tt.want && err != nil {
			t.Errorf("%.200s is plain, but compiling says %v", tt.schema, err)
		}
	}
}

// FuzzCompile: what Compile takes without compiling it compiles. Whatever compiles also validates without ado, and a value fits
// or not for reasons that can be told.
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
		if _, err := v.compile(); err != nil {
			t.Fatalf("Compile(%q) says yes without compiling, compiling says %v", schema, err)
		}
		err = v.Validate(data)
		var invalid *ValidationError
		if err != nil && (!errors.As(err, &invalid) || len(invalid.Faults) == 0) {
			t.Fatalf("Compile(%q).Validate(%q) = %v, want a ValidationError with faults", schema, data, err)
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
