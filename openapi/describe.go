package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Description is a server that a document describes for callers that do not speak MCP: each tool is a POST of its
// arguments as JSON.
type Description struct {
	Title, Version, Text string
	URL                  string   // of the program that serves the tools, such as https://mcp.example.com
	Path                 string   // of the server there, escaped, such as /api/pets; the name of a tool follows it and a slash
	Security             []string // how callers authenticate, one of these: bearer, basic, mutualTLS; empty: not at all
	Tools                []mcp.Tool

	// Lost is set by Document: what the document does not say of the tools, and why.
	Lost []string
}

// Bounds of a document that describes a server, in bytes.
const (
	maxText      = 16 << 10 // of one description
	maxDescribed = 16 << 20 // of the schemas of all tools
)

// Document returns an OpenAPI 3.1 document in JSON, which [Parse] reads. The same description has the same document. A
// schema that is referred to in the schema of a tool is in components. Invisible characters and those that a terminal
// obeys are escaped as JSON has it. The texts of the server are otherwise as they are, and viewers may read Markdown in
// them.
func (d *Description) Document() []byte {
	d.Lost = nil
	w := &describer{of: d, taken: map[string]int{"Content": 1, "Problem": 1}}
	var info, paths object
	info.text("title", cmp.Or(oneLine(d.Title, 200), "MCP server"))
	info.text("version", cmp.Or(oneLine(d.Version, 100), "1"))
	if d.Text != "" {
		info.text("description", clipped(d.Text))
	}
	seen := map[string]bool{}
	for i := range d.Tools {
		t := &d.Tools[i]
		switch {
		case seen[t.Name]:
			w.lose(t.Name, "another tool has the name")
			continue
		case t.Name == "" || safeSegments(t.Name) != nil:
			w.lose(t.Name, "a path cannot have the name")
			continue
		}
		seen[t.Name] = true
		var item object
		item.add("post", w.operation(t))
		paths.add(d.Path+"/"+url.PathEscape(t.Name), item.end())
	}
	var doc, server, components, schemes object
	doc.text("openapi", "3.1.0")
	doc.add("info", info.end())
	server.text("url", cmp.Or(d.URL, "/"))
	doc.add("servers", array(server.end()))
	doc.add("paths", paths.end())
	var any [][]byte // security schemes, each of which is enough
	for _, name := range d.Security {
		var scheme, use object
		switch name {
		case "mutualTLS":
			scheme.text("type", name)
		default:
			scheme.text("type", "http")
			scheme.text("scheme", name)
		}
		schemes.add(name, scheme.end())
		use.add(name, []byte("[]"))
		any = append(any, use.end())
	}
	if any != nil {
		doc.add("security", array(any...))
		components.add("securitySchemes", schemes.end())
	}
	w.schemas.add("Content", []byte(contentSchema))
	w.schemas.add("Problem", []byte(problemSchema))
	components.add("schemas", w.schemas.end())
	components.add("responses", []byte(responses))
	doc.add("components", components.end())
	var out []byte
	if compact := doc.end(); len(compact) < maxDescribed/4 {
		out = append(out, indent(compact)...)
	} else {
		out = compact // indented it would be larger than documents may be
	}
	return text.Escape(nil, string(out))
}

// describer writes one document.
type describer struct {
	of      *Description
	taken   map[string]int // names in schemas, with the number that comes next
	schemas object
	bytes   int // of all schemas
}

func (w *describer) lose(tool, format string, args ...any) {
	w.of.Lost = append(w.of.Lost, fmt.Sprintf("tool %s: %s", quote(tool), fmt.Sprintf(format, args...)))
}

// operation describes the call of a tool.
func (w *describer) operation(t *mcp.Tool) []byte {
	var op, request, media, json, answers, good, kinds object
	op.text("operationId", t.Name)
	title := t.Title
	if t.Annotations != nil {
		title = cmp.Or(title, t.Annotations.Title)
		if hints, err := jsonx.Marshal(t.Annotations); err == nil {
			op.add("x-mcp-annotations", hints)
		}
	}
	if title != "" {
		op.text("summary", oneLine(title, 200))
	}
	if t.Description != "" {
		op.text("description", clipped(t.Description))
	}
	request.add("required", []byte("true")) // forms of web pages can have no body
	json.add("schema", w.schema(t, "input", t.InputSchema))
	media.add("application/json", json.end())
	request.add("content", media.end())
	op.add("requestBody", request.end())
	good.text("description", "The result of the tool.")
	if t.OutputSchema != nil {
		var content object
		content.add("schema", w.schema(t, "output", t.OutputSchema))
		kinds.add("application/json", content.end())
	} else {
		kinds.add("text/plain", []byte(`{"schema":{"type":"string"}}`))
		kinds.add("application/json", []byte(`{"schema":{"$ref":"#/components/schemas/Content"}}`))
	}
	good.add("content", kinds.end())
	answers.add("200", good.end())
	answers.add("422", []byte(`{"$ref":"#/components/responses/ToolError"}`))
	answers.add("429", []byte(`{"$ref":"#/components/responses/Later"}`))
	answers.add("503", []byte(`{"$ref":"#/components/responses/Later"}`))
	answers.add("default", []byte(`{"$ref":"#/components/responses/Problem"}`))
	op.add("responses", answers.end())
	return op.end()
}

// anyObject is the schema of a tool whose own cannot be described.
const anyObject = `{"type":"object"}`

// schema returns a schema of a tool, whose references lead to components of the document.
func (w *describer) schema(t *mcp.Tool, which string, raw json.RawMessage) []byte {
	root, err := parseJSON(raw)
	switch {
	case err != nil:
		w.lose(t.Name, "its %s schema is not JSON: %v", which, err)
		return []byte(anyObject)
	case root.kind != '{':
		w.lose(t.Name, "its %s schema is not an object", which)
		return []byte(anyObject)
	case w.bytes > maxDescribed:
		w.lose(t.Name, "the schemas of the tools before it have %d MiB together, and no more are described", maxDescribed>>20)
		return []byte(anyObject)
	}
	r := newReader(root)
	r.plain, r.whole, r.taken = true, true, w.taken
	r.prefix, r.scope = "#/components/schemas/", cmp.Or(plainName(t.Name, maxName), "tool")+"."
	s := &schemas{reader: r}
	out := s.append(nil, root, 0)
	var named object
	for _, d := range s.closure(len(out)) {
		named.add(d.name, d.raw)
	}
	w.bytes += len(out) + len(named)
	if s.err != nil {
		w.lose(t.Name, "%s: %v", which, s.err)
		return []byte(anyObject)
	}
	for _, ref := range s.lost {
		w.lose(t.Name, "a reference of its %s schema leads nowhere: %s", which, quote(ref))
	}
	if len(named) > 0 {
		w.schemas.members(named)
	}
	return out
}

// clipped returns a text, cut if it is long, with its length.
func clipped(s string) string {
	if s = strings.ToValidUTF8(s, "\ufffd"); len(s) <= maxText {
		return s
	}
	return fmt.Sprintf("%s\n\n(cut; the whole text has %d bytes)", text.Clip(s, maxText), len(s))
}

// object is a JSON object that is written member by member, without its last brace.
type object []byte

func (o *object) add(name string, value []byte) {
	*o = append(jsonx.AppendString(o.next(), name), ':')
	*o = append(*o, value...)
}

func (o *object) text(name, value string) { o.add(name, jsonx.AppendString(nil, value)) }

// members adds those of another object, which has some.
func (o *object) members(from object) { *o = append(o.next(), from[1:]...) }

func (o *object) next() []byte {
	if len(*o) == 0 {
		return append(*o, '{')
	}
	return append(*o, ',')
}

func (o *object) end() []byte {
	if len(*o) == 0 {
		return []byte("{}")
	}
	return append(*o, '}')
}

func array(items ...[]byte) []byte {
	out := []byte{'['}
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, ']')
}

func indent(compact []byte) []byte {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if e.Encode(json.RawMessage(compact)) != nil {
		return compact
	}
	return []byte(out.String())
}

// The schemas and answers that all descriptions have.
const (
	contentSchema = `{"type":"object","description":"The content of a result that has no structure.","properties":{"content":{"type":"array","items":{"type":"object",
		"description":"A block of content as MCP has it.","properties":{"type":{"type":"string","description":"text, image, audio, resource, resource_link or another."},
		"text":{"type":"string"},"data":{"type":"string","contentEncoding":"base64"},"mimeType":{"type":"string"}},"required":["type"]}}},"required":["content"]}`
	problemSchema = `{"type":"object","description":"A problem as RFC 9457 has it.","properties":{"title":{"type":"string"},"status":{"type":"integer"},
		"detail":{"type":"string"},"content":{"type":"array","items":{"type":"object"},"description":"The content with which a tool has said what is wrong, if it is more than a text."}},
		"required":["title","status"]}`
	problemContent = `"content":{"application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}`
	responses      = `{"ToolError":{"description":"The tool has failed, and says why.",` + problemContent + `},
		"Later":{"description":"The call can be repeated later.","headers":{"Retry-After":{"description":"Seconds to wait.","schema":{"type":"integer"}}},` + problemContent + `},
		"Problem":{"description":"The tool was not called, or has not answered.",` + problemContent + `}}`
)
