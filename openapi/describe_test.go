package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/openapi"
	"github.com/patchbay-dev/patchbay/schema"
)

// described is a tool, with arguments that its schema accepts and others that it refuses.
type described struct {
	name, schema string
	good, bad    []string
}

var describedTools = []described{
	{"plain", `{"type":"object","properties":{"a":{"type":"string","minLength":2},"n":{"type":["integer","null"],"minimum":3}},"required":["a"],"additionalProperties":false}`,
		[]string{`{"a":"xy"}`, `{"a":"xy","n":3}`, `{"a":"xy","n":null}`}, []string{`{}`, `{"a":"x"}`, `{"a":"xy","n":2}`, `{"a":"xy","b":1}`}},
	{"no-arguments", `{"type":"object","properties":{}}`, []string{`{}`, `{"a":1}`}, []string{`[]`}},
	{"defs", `{"type":"object","properties":{"tree":{"$ref":"#/$defs/Node"}},"required":["tree"],"$defs":{"Node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/Node"}},"required":["v"]}}}`,
		[]string{`{"tree":{"v":1,"next":{"v":2}}}`}, []string{`{"tree":{"v":1,"next":{}}}`, `{}`}},
	{"other-defs", `{"type":"object","properties":{"tree":{"$ref":"#/$defs/Node"}},"$defs":{"Node":{"type":"string"}}}`, []string{`{"tree":"x"}`}, []string{`{"tree":{"v":1}}`}},
	{"definitions", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"c":{"$ref":"#/definitions/a~1b%25"}},"definitions":{"a/b%":{"enum":["red",1,null]}}}`,
		[]string{`{"c":"red"}`, `{"c":null}`}, []string{`{"c":"blue"}`}},
	{"itself", `{"type":"object","properties":{"child":{"$ref":"#"},"x":{"const":1}}}`, []string{`{"child":{"child":{"x":1}}}`}, []string{`{"child":{"child":{"x":2}}}`, `{"child":1}`}},
	{"place", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"boolean"}},"b":{"$ref":"#/properties/a/items"}}}`, []string{`{"b":true}`}, []string{`{"b":1}`}},
	{"combined", `{"type":"object","properties":{"v":{"oneOf":[{"type":"string"},{"type":"object","properties":{"k":{"type":"number","exclusiveMinimum":0}},"required":["k"]}]},"t":{"type":"array","prefixItems":[{"type":"string"},true],"items":false}},"if":{"required":["v"]},"then":{"required":["t"]}}`,
		[]string{`{"v":{"k":1},"t":["a",1]}`, `{}`}, []string{`{"v":"x"}`, `{"v":{"k":0},"t":[]}`, `{"t":[1]}`, `{"t":["a",1,2]}`}},
	{"tuple", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"t":{"type":"array","items":[{"type":"string"},{"type":"integer"}]}}}`, []string{`{"t":["a",1]}`}, []string{`{"t":[1,"a"]}`}},
	{"read-only", `{"type":"object","properties":{"id":{"type":"string","readOnly":true}},"required":["id"]}`, []string{`{"id":"x"}`}, []string{`{}`, `{"id":1}`}},
	{"foreign-pattern", `{"type":"object","properties":{"p":{"type":"string","pattern":"(?<=x)y","maxLength":3}}}`, []string{`{"p":"xy"}`}, nil},
}

// A description of tools is read again as tools of the same names, whose bodies are what the schemas accept.
func TestDescriptionIsReadAgain(t *testing.T) {
	d := &openapi.Description{Title: "Shop", Version: "1", Text: "Sells.", URL: "http://127.0.0.1:7420", Path: "/api/shop", Security: []string{"bearer", "basic"}}
	for _, tt := range describedTools {
		d.Tools = append(d.Tools, mcp.Tool{Name: tt.name, Title: "T", Description: "D", InputSchema: []byte(tt.schema)})
	}
	d.Tools[0].OutputSchema = []byte(`{"type":"object","properties":{"r":{"$ref":"#/$defs/R"}},"$defs":{"R":{"type":"integer"}}}`)
	raw := d.Document()
	if len(d.Lost) > 0 {
		t.Errorf("lost: %q", d.Lost)
	}
	if again := d.Document(); !bytes.Equal(raw, again) {
		t.Error("the document differs when it is made again")
	}
	doc, err := openapi.Parse(raw)
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if len(doc.Unmapped) > 0 || doc.Title != "Shop" || doc.Server != "http://127.0.0.1:7420" || !slices.Equal(doc.Schemes(), []string{"basic", "bearer"}) {
		for _, f := range doc.Unmapped {
			t.Error(f)
		}
		t.Errorf("title %q, server %q, schemes %v", doc.Title, doc.Server, doc.Schemes())
	}
	for i, tt := range describedTools {
		op := doc.Operations[i]
		if op.Name != tt.name || op.Path != "/api/shop/"+tt.name || op.Method != "POST" || op.Title != "T" || op.Description != "D" {
			t.Errorf("%s: name %q, %v, title %q, description %q", tt.name, op.Name, op, op.Title, op.Description)
		}
		check, err := schema.Compile(op.Input)
		if err != nil {
			t.Errorf("%s: %v in %s", tt.name, err, op.Input)
			continue
		}
		for _, v := range tt.good {
			if err := check.Validate([]byte(`{"body":` + v + `}`)); err != nil {
				t.Errorf("%s: %s is refused: %v by %s", tt.name, v, err, op.Input)
			}
		}
		for _, v := range tt.bad {
			if check.Validate([]byte(`{"body":`+v+`}`)) == nil {
				t.Errorf("%s: %s is accepted by %s", tt.name, v, op.Input)
			}
		}
	}
	if check, _ := schema.Compile(doc.Operations[1].Input); check.Validate([]byte(`{}`)) == nil {
		t.Error("the body is not required")
	}
}

// Schemas and texts of a hostile server neither break the document nor make it large, and what is left out is named.
func TestHostileDescription(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 500) + `{}` + strings.Repeat(`}}`, 500)
	var many strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&many, `,"p%d":{"type":"string"}`, i)
	}
	tools := map[string]string{ // the text that names what is lost; empty: nothing
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/Gone"},"b":{"$ref":"https://evil.example/s.json"},"c":{"$ref":"#name"}}}`:            "leads nowhere",
		`{"type":7,"properties":[],"required":"x","enum":{},"items":3,"pattern":"(","minimum":"a","oneOf":[],"allOf":5,"$ref":4,"title":["<b>"]}`: "",
		deep: "not JSON",
		`{"properties":{"x":{}` + many.String() + `}}`:    "parts",
		`{"enum":["` + strings.Repeat("x", 2<<20) + `"]}`: "KiB",
		`"text"`:         "not an object",
		`{"properties":`: "not JSON",
		`{"$ref":"#"}`:   "leads nowhere",
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`: "leads nowhere",
	}
	texts := []string{strings.Repeat("é", 1<<20), "\"}}],\x00\x1b[31m\u202e \u2028</script><!--", "\xff\xfe", "*/ `${}`"}
	names := []string{"a/b", "..", ".", "", "a{id}", "a%2e", "a b", "dup", "dup", "../x", "é\u202e", strings.Repeat("n", 500), "?q#f"}
	d := &openapi.Description{Title: texts[1], Version: texts[2], Text: texts[0], Path: "/api/x"}
	for in := range tools {
		d.Tools = append(d.Tools, mcp.Tool{Name: fmt.Sprint("t", len(d.Tools)), InputSchema: []byte(in), OutputSchema: []byte(in)})
	}
	for i, name := range names {
		d.Tools = append(d.Tools, mcp.Tool{Name: name, Title: texts[i%len(texts)], Description: texts[(i+1)%len(texts)], InputSchema: []byte(`{"type":"object"}`)})
	}
	raw := d.Document()
	if !json.Valid(raw) || len(raw) > 4<<20 || bytes.ContainsAny(raw, "\x00\x1b\u202e\u2028") {
		t.Fatalf("%d bytes, valid %v: %.500s", len(raw), json.Valid(raw), raw)
	}
	lost := strings.Join(d.Lost, "\n")
	for i, tool := range d.Tools[:len(tools)] {
		if want := tools[string(tool.InputSchema)]; want != "" && !strings.Contains(lost, want) || want == "" && strings.Contains(lost, fmt.Sprintf("%q", tool.Name)) {
			t.Errorf("schema %d, %.100s: lost %q", i, tool.InputSchema, lost)
		}
	}
	doc, err := openapi.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range doc.Unmapped {
		t.Error(f)
	}
	for _, op := range doc.Operations[:len(tools)] {
		if _, err := schema.Compile(op.Input); err != nil {
			t.Errorf("%s: %v", op.Name, err)
		}
	}
	// Of the names, two are of dots, one is empty, one occurs twice, and one leads elsewhere when a proxy decodes it.
	if got, want := len(doc.Operations), len(tools)+len(names)-5; got != want {
		t.Errorf("%d operations, want %d", got, want)
	}
	for _, op := range doc.Operations {
		if strings.Count(op.Path, "/") != 3 || strings.ContainsAny(op.Path, "{}?# ") {
			t.Errorf("the path %q is not one of a tool", op.Path)
		}
	}
}

// A document of very many tools stays within what can be read again.
func TestLargeDescription(t *testing.T) {
	d := &openapi.Description{Path: "/api/x"}
	big := []byte(`{"type":"object","properties":{"a":{"enum":["` + strings.Repeat("x", 900<<10) + `"]}}}`)
	for i := range 40 {
		d.Tools = append(d.Tools, mcp.Tool{Name: fmt.Sprint("t", i), InputSchema: big})
	}
	raw := d.Document()
	doc, err := openapi.Parse(raw)
	if err != nil || len(doc.Operations) != 40 || !strings.Contains(strings.Join(d.Lost, "\n"), "MiB together") {
		t.Errorf("%d bytes, %v, lost %q", len(raw), err, d.Lost)
	}
}
