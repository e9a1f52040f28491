package openapi_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/openapi"
	"github.com/patchbay-dev/patchbay/schema"
)

// Definitions that operations share are written and compiled once. The schema of each operation compiles nevertheless as a whole,
// or the operation is named.
func TestDefinitions(t *testing.T) {
	var paths, definitions strings.Builder
	operation := func(name, schema string) {
		fmt.Fprintf(&paths, "  /%s: {post: {operationId: %s, requestBody: {content: {application/json: {schema: %s}}}}}\n", name, name, schema)
	}
	ref := func(name string) string { return "{$ref: '#/components/schemas/" + name + "'}" }
	define := func(name, schema string) { fmt.Fprintf(&definitions, "    %s: %s\n", name, schema) }

	define("Pet", `{type: object, properties: {id: {pattern: "^(?!x)a$"}, name: {type: string, pattern: "^b$"}, mate: `+ref("Pet")+`, tag: `+ref("Tag")+`}}`)
	define("Tag", `{type: string, pattern: "^c$"}`)
	define("Endless", "{allOf: ["+ref("Tag")+", "+ref("Endless2")+"]}")
	define("Endless2", "{anyOf: ["+ref("Endless")+"]}")
	operation("pet", ref("Pet"))
	operation("list", "{type: array, items: "+ref("Pet")+"}")
	for _, name := range []string{"Endless", "Endless2", "Endless"} {
		operation("no"+fmt.Sprint(paths.Len()), ref(name))
	}
	// Each compiles, and all of them together are more than a schema may have.
	var sized []string
	for i := range 50 {
		sized = append(sized, ref(fmt.Sprint("Sized", i)))
		define(fmt.Sprint("Sized", i), fmt.Sprintf(`{type: string, pattern: "^[a-z]{1,%d}$"}`, 900+i))
		operation(fmt.Sprint("sized", i), sized[i])
	}
	for i := range 150 {
		define(fmt.Sprint("Nested", i), "{allOf: [{nullable: true, allOf: ["+ref(fmt.Sprint("Nested", i+1))+"]}]}")
	}
	define("Nested150", "{}")
	for i := 149; i >= 0; i-- {
		operation(fmt.Sprint("nested", i), ref(fmt.Sprint("Nested", i)))
	}
	operation("allSized", "{anyOf: ["+strings.Join(sized, ", ")+"]}")

	doc := document(t, "3.0.0", "paths:\n"+paths.String()+"components:\n  schemas:\n"+definitions.String())
	inputs := map[string]string{}
	for _, op := range doc.Operations {
		inputs[op.Name] = string(op.Input)
		if _, err := schema.Compile(op.Input); err != nil {
			t.Errorf("%s: %v", op.Name, err)
		}
	}
	const defs = `"$defs":{"Pet":{"type":"object","properties":{"id":{},"name":{"type":"string","pattern":"^b$"},"mate":{"$ref":"#/$defs/Pet"},"tag":{"$ref":"#/$defs/Tag"}}},"Tag":{"type":"string","pattern":"^c$"}}`
	for _, name := range []string{"pet", "list"} {
		if !strings.Contains(inputs[name], defs) {
			t.Errorf("%s has the schema %s, want %s in it", name, inputs[name], defs)
		}
	}
	if !strings.Contains(inputs["sized7"], "{1,907}") || inputs["allSized"] == "" || strings.Contains(inputs["allSized"], "pattern") {
		t.Errorf("patterns that are too large together: %q, %.200q", inputs["sized7"], inputs["allSized"])
	}
	endless, deep := 0, 0
	for _, f := range doc.Unmapped {
		switch {
		case strings.Contains(f.Text, "its schema cannot be used: schema: the schema refers to itself"):
			endless++
		case strings.Contains(f.Text, "its schema cannot be used: schema: more than 256 subschemas lead to each other"):
			deep++
		default:
			t.Error(f)
		}
	}
	if endless != 3 || deep == 0 || len(doc.Operations)+endless+deep != 206 {
		t.Errorf("%d operations refer to themselves, %d are too deep, %d are mapped", endless, deep, len(doc.Operations))
	}
}

// A thousand operations take few bytes, since what they share is made once and what is not called is not compiled.
func TestThousandAllocations(t *testing.T) {
	data := thousand()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	doc, err := openapi.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openapi.New(doc, openapi.Options{Base: "https://api.example.com"}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 60 {
		t.Errorf("%d MiB are allocated", allocated)
	}
}
