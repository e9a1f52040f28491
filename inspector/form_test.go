package inspector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/health"
)

// post posts a document to the page, and decodes the answer.
func post(t *testing.T, path, body string, into any) int {
	t.Helper()
	p := &Page{Report: func() *health.Report { return &health.Report{URL: "http://127.0.0.1:7420/mcp"} }}
	p.mux = http.NewServeMux()
	p.routeForms()
	w := httptest.NewRecorder()
	p.mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v in %s", path, err, w.Body)
		}
	}
	return w.Code
}

// outline writes a form as a line for each field.
func outline(f *formField, indent string) string {
	line := indent + strings.TrimSpace(f.Name+" "+f.Kind)
	if f.Required {
		line += " *"
	}
	for _, o := range f.Options {
		line += " " + o.Title
	}
	if f.Bounds != "" {
		line += " (" + f.Bounds + ")"
	}
	if f.Default != nil {
		line += " = " + string(f.Default)
	}
	if f.More != nil {
		line += " more at " + strings.Join(f.More, "")
	}
	line += "\n"
	for i := range f.Fields {
		line += outline(&f.Fields[i], indent+"  ")
	}
	marked := func(mark string, part *formField) {
		if part != nil {
			line += indent + "  " + mark + " " + strings.TrimPrefix(outline(part, indent+"  "), indent+"  ")
		}
	}
	marked("{}", f.Rest)
	marked("[]", f.Element)
	for i := range f.Alternatives {
		marked("|", &f.Alternatives[i])
	}
	return line
}

// The form of a schema has all parts of it, whatever they are made of.
func TestForm(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"plain", `{"type":"object","properties":{"a":{"type":"string","minLength":2,"maxLength":5},"b":{"type":"integer","minimum":1,"default":3}},"required":["a"]}`,
			"object\n  a string * (2…5 characters)\n  b integer (at least 1) = 3\n"},
		{"nested objects and lists", `{"type":"object","properties":{"who":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":{"type":"number"}},"lines":{"type":"array","minItems":1,"uniqueItems":true,"items":{"type":"object","properties":{"n":{"type":"integer"}}}}}}`,
			"object\n  who object\n    name string *\n    {} number\n  lines list (at least 1 element, all different)\n    [] lines object\n      n integer\n"},
		{"choice with a tag", `{"type":"object","properties":{"pay":{"oneOf":[{"title":"Card","type":"object","properties":{"kind":{"const":"card"}},"required":["kind"]},{"type":"string"}]}}}`,
			"object\n  pay choice\n    | pay object\n      kind enum * card\n    | pay string\n"},
		{"several types", `{"type":"object","properties":{"id":{"type":["integer","string","null"]}}}`,
			"object\n  id choice\n    | id integer\n    | id string\n"},
		{"choices with null", `{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x","y",null]},"b":{"anyOf":[{"type":"string","enum":["x"]},{"type":"null"}]}}}`,
			"object\n  a enum x y null\n  b enum x null\n"},
		{"choice of the whole", `{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"b":{"type":"number"}},"required":["b"]},{"properties":{"c":{"type":"boolean"}}}]}`,
			"choice\n  | object\n    b number *\n    a string\n  | object\n    c boolean\n    a string\n"},
		{"alternatives that only exclude", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			"object\n  a string\n  b string\n"},
		{"allOf", `{"allOf":[{"$ref":"#/$defs/base"},{"properties":{"b":{"type":"number"}},"required":["b"]}],"$defs":{"base":{"type":"object","properties":{"a":{"type":"string"},"b":{"minimum":2}}}}}`,
			"object\n  a string\n  b number * (at least 2)\n"},
		{"anchor", `{"type":"object","properties":{"a":{"$ref":"#home"}},"$defs":{"x":{"$anchor":"home","type":"object","properties":{"street":{"type":"string"}}}}}`,
			"object\n  a object\n    street string\n"},
		{"tuple of 2020-12", `{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":{"type":"boolean"}}}}`,
			"object\n  p list\n    number\n    string\n    [] p boolean\n"},
		{"tuple of draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"n":{"type":"number"}},"properties":{"p":{"type":"array","items":[{"$ref":"#/definitions/n"}]}}}`,
			"object\n  p list\n    number\n"},
		{"without properties", `{"type":"object"}`, "object\n"},
		{"only other members", `{"type":"object","additionalProperties":{"type":"integer"}}`, "object\n  {} integer\n"},
		{"anything", `{"type":"object","properties":{"x":{},"y":true,"z":{"type":"object"},"l":{"type":"array"}}}`,
			"object\n  x other\n  y other\n  z other\n  l other\n"},
		{"not an object", `{"type":"integer"}`, "integer\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var f form
			if code := post(t, "/ui/form", `{"schema":`+tt.schema+`}`, &f); code != http.StatusOK || f.Error != "" {
				t.Fatalf("HTTP %d, error %q", code, f.Error)
			}
			if got := outline(&f.formField, ""); got != tt.want {
				t.Errorf("the form of %s is\n%s, not\n%s", tt.schema, got, tt.want)
			}
		})
	}
}

// A schema that contains itself is sent to a bounded depth; the person opens the rest, as deep as they want.
func TestFormOfItself(t *testing.T) {
	const tree = `{"type":"object","properties":{"left":{"$ref":"#"},"kids":{"type":"array","items":{"$ref":"#"}},"v":{"type":"integer"}}}`
	at := []string{}
	for range 20 {
		place, err := json.Marshal(at)
		if err != nil {
			t.Fatal(err)
		}
		var f form
		if code := post(t, "/ui/form", fmt.Sprintf(`{"schema":%s,"at":%s}`, tree, place), &f); code != http.StatusOK || f.Kind != "object" {
			t.Fatalf("the part at %q: HTTP %d, %s", at, code, f.Kind)
		}
		part := &f.formField
		for part.More == nil {
			part = &part.Fields[0]
		}
		if len(part.More) <= len(at) {
			t.Fatalf("the part at %q has more at %q", at, part.More)
		}
		at = part.More
	}
	if code := post(t, "/ui/form", `{"schema":`+tree+`,"at":[".0","[]"]}`, nil); code != http.StatusNotFound {
		t.Errorf("a place that is not there: HTTP %d", code)
	}
	for _, step := range []string{"", ".", ".x", ".-1", ".99999999999999999999", "|0", "#0", "{}"} {
		if code := post(t, "/ui/form", fmt.Sprintf(`{"schema":%s,"at":[%q]}`, tree, step), nil); code != http.StatusNotFound {
			t.Errorf("step %q: HTTP %d", step, code)
		}
	}
}

// Forms of hostile schemas are small, and made at once.
func TestFormOfHostile(t *testing.T) {
	many := `{"type":"object","properties":{`
	for i := range 2000 {
		many += fmt.Sprintf(`"p%d":{"$ref":"#/$defs/n"},`, i)
	}
	many += `"z":{"type":"string"}},"$defs":{"n":{"type":"object","properties":{` + strings.Repeat(`"x":{"$ref":"#/$defs/n"},`, 1) + `"y":{"$ref":"#/$defs/n"}}}}}`
	alternatives := `{"type":"object","properties":{"big":{"description":"` + strings.Repeat("b", 100_000) + `","type":"string"}},"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"properties":{"a":{"type":"string"}}},`, 2000), ",") + `]}`
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 200) + `{}` + strings.Repeat(`}}`, 200)
	for name, of := range map[string]string{
		"many": many, "alternatives": alternatives, "deep": deep,
		"loop":            `{"$ref":"#"}`,
		"two in a circle": `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"allOf of itself": `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"object","allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}}}`,
		"lookahead":       `{"type":"object","properties":{"a":{"type":"string","pattern":"(?=x)"}}}`,
		"elsewhere":       `{"type":"object","properties":{"a":{"$ref":"https://example.com/x"}}}`,
		"not a schema":    `{"type":7,"properties":[1],"required":"a","anyOf":{},"allOf":[1]}`,
		"a boolean":       `true`, "null": `null`, "a text": `"x"`, "a list": `[{}]`,
	} {
		w := httptest.NewRecorder()
		p := &Page{}
		p.mux = http.NewServeMux()
		p.routeForms()
		p.mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/ui/form", strings.NewReader(`{"schema":`+of+`}`)))
		if w.Code != http.StatusOK || w.Body.Len() > 4<<20 {
			t.Errorf("%s: HTTP %d with %d bytes: %.200s", name, w.Code, w.Body.Len(), w.Body)
		}
	}
	for body, want := range map[string]int{
		"":  http.StatusBadRequest,
		"[": http.StatusBadRequest,
		`{"schema":"` + strings.Repeat("x", maxFormBytes) + `"}`:        http.StatusRequestEntityTooLarge,
		`{"schema":{},"at":[` + strings.Repeat(`".0",`, 200) + `".0"]}`: http.StatusBadRequest,
	} {
		if code := post(t, "/ui/form", body, nil); code != want {
			t.Errorf("%.20s of %d bytes: HTTP %d, want %d", body, len(body), code, want)
		}
	}
}

// The forms of the schemas that package schema is tested with are made, and so are all of their parts.
func TestFormOfTestdata(t *testing.T) {
	files, err := filepath.Glob("../schema/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var f form
		if code := post(t, "/ui/form", `{"schema":`+string(text)+`}`, &f); code != http.StatusOK || f.Kind == "" {
			t.Errorf("%s: HTTP %d, kind %q", file, code, f.Kind)
		}
	}
}

// The faults of a value have the pointers of their fields; a schema that cannot be used is not a fault of the value.
func TestCheck(t *testing.T) {
	const of = `{"type":"object","properties":{"a/b":{"type":"integer"},"l":{"type":"array","items":{"type":"object","required":["x"]}},"mail":{"type":"string","format":"email"}},"required":["must"],"additionalProperties":false}`
	tests := []struct{ name, body, want string }{
		{"fits", `{"schema":{"type":"object"},"value":{}}`, `{"faults":[]}`},
		{"pointers", `{"schema":` + of + `,"value":{"a/b":"x","l":[{"x":1},{}],"new":1}}`, `/must missing "must" /new unknown property "new" /a~1b must be an integer, got string /l/1/x missing "x"`},
		{"formats of a tool are notes", `{"schema":` + of + `,"value":{"must":1,"mail":"x"}}`, `/must unknown property "must"`},
		{"formats of a question count", `{"form":true,"schema":{"type":"object","properties":{"mail":{"type":"string","format":"email"}}},"value":{"mail":"x"}}`, `/mail`},
		{"no value", `{"schema":{}}`, ` is missing`},
		{"null", `{"schema":{"type":"null"},"value":null}`, `{"faults":[]}`},
		{"a question that gets no object", `{"form":true,"schema":{"type":"object","properties":{"a":{}}},"value":[1]}`, ` must be an object`},
		{"a large integer", `{"schema":{"const":9007199254740993},"value":9007199254740992}`, ` must be`},
		{"no schema", `{"value":1}`, `"error":`},
		{"a schema with a lookahead", `{"schema":{"pattern":"(?=x)"},"value":"x"}`, `"error":"schema: not a valid schema`},
		{"not a schema", `{"schema":{"type":7},"value":1}`, `"error":"schema:`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var raw json.RawMessage
			post(t, "/ui/check", tt.body, &raw)
			var got struct{ Faults []formFault }
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			text := string(bytes.TrimSpace(raw))
			if len(got.Faults) > 0 {
				text = ""
				for _, f := range got.Faults {
					text += f.Path + " " + f.Text + " "
				}
			}
			if !strings.Contains(text, tt.want) {
				t.Errorf("check of %s: %s, want %s", tt.body, text, tt.want)
			}
		})
	}
}
