package openapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/openapi"
	"github.com/patchbay-dev/patchbay/servers/everything"
)

// The document that describes the server everything, and one with schemas that are hard to describe, are valid for kin-openapi,
// and each schema for a checker of JSON Schema that others wrote.
func TestDescriptions(t *testing.T) {
	hard := []mcp.Tool{
		{Name: "defs", InputSchema: []byte(`{"type":"object","properties":{"t":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N"},"s":{"$ref":"#"}}}}}`), OutputSchema: []byte(`{"type":"object","properties":{"t":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"integer"}}}`)},
		{Name: "definitions", InputSchema: []byte(`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://example.com/s","type":"object","properties":{"t":{"$ref":"#/definitions/a~1b"},"u":{"items":[{"type":"string"},{}]}},"definitions":{"a/b":{"const":1}}}`)},
		{Name: "truths", InputSchema: []byte(`{"type":"object","properties":{"a":true,"b":false,"c":{"not":{}},"d":{"type":["string","null"],"default":null}},"unevaluatedProperties":false}`)},
		{Name: "wrong", InputSchema: []byte(`{"type":7,"properties":{"a":{"enum":{},"minimum":"x","pattern":"("}},"required":"a","$ref":3,"format":5,"examples":7,"deprecated":"yes","additionalProperties":[]}`)},
		{Name: "lost", InputSchema: []byte(`{"type":"object","properties":{"a":{"$ref":"https://example.com/gone"},"b":{"$ref":"#/$defs/gone"}}}`)},
		{Name: "a/b.c{d} é", Title: "<b>\x00", Description: "\u202e\xff", InputSchema: []byte(`{"type":"object"}`)},
	}
	descriptions := map[string][]mcp.Tool{"hard": hard}
	s, err := (&mcp.Client{}).Open(t.Context(), everything.New())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		descriptions["everything"] = append(descriptions["everything"], *tool)
	}
	for name, tools := range descriptions {
		t.Run(name, func(t *testing.T) {
			d := &openapi.Description{Title: name, Version: "1", URL: "https://mcp.example.com", Path: "/api/" + name, Security: []string{"bearer"}, Tools: tools}
			raw := d.Document()
			doc, err := openapi3.NewLoader().LoadFromData(raw)
			if err != nil {
				t.Fatal(err)
			}
			if err := doc.Validate(t.Context()); err != nil {
				t.Error(err)
			}
			if got := len(doc.Paths.Map()); got != len(tools) {
				t.Errorf("%d paths for %d tools", got, len(tools))
			}
			compileAll(t, raw)
		})
	}
}

// compileAll compiles each schema of a document at its place, where its references lead to others.
func compileAll(t *testing.T, raw []byte) {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("mem:///doc", value); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]struct {
			Post struct {
				Responses map[string]struct{ Content map[string]json.RawMessage }
			}
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	compiled := 0
	compile := func(pointer ...string) {
		for i := range pointer {
			pointer[i] = strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", " ", "%20").Replace(pointer[i])
		}
		if _, err := c.Compile("mem:///doc#/" + strings.Join(pointer, "/")); err != nil {
			t.Error(err)
		}
		compiled++
	}
	for path, item := range doc.Paths {
		compile("paths", path, "post", "requestBody", "content", "application/json", "schema")
		for kind := range item.Post.Responses["200"].Content {
			compile("paths", path, "post", "responses", "200", "content", kind, "schema")
		}
	}
	for name := range doc.Components.Schemas {
		compile("components", "schemas", name)
	}
	if compiled < len(doc.Paths) {
		t.Errorf("%d schemas of %d tools", compiled, len(doc.Paths))
	}
}
