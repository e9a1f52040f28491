package revision

import (
	"encoding/json"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Result converts a result from the inner form to this revision. The argument uses is the set of
// features in the result. If nothing has to change, Result returns raw. docs/revisions.md lists the
// replacements for features that a revision lacks.
func (t *Table) Result(method string, raw json.RawMessage, uses Feature) json.RawMessage {
	if uses&t.Lacks == 0 || !t.Sessions && method != MethodTools {
		return raw
	}
	switch method {
	case MethodTools:
		return mapMember(raw, "tools", t.tool)
	case MethodPrompts:
		return mapMember(raw, "prompts", t.prompt)
	case MethodResources:
		return mapMember(raw, "resources", t.named)
	case MethodTemplates:
		return mapMember(raw, "resourceTemplates", t.named)
	case MethodCall:
		return t.toolResult(raw)
	case MethodPrompt:
		return mapMember(raw, "messages", t.promptMessage)
	case MethodRead:
		return mapMember(raw, "contents", t.contents)
	}
	return raw
}

// Implementation converts a serverInfo or clientInfo.
func (t *Table) Implementation(raw json.RawMessage) json.RawMessage {
	if t.Lacks&Icons != 0 {
		raw = jsonx.Without(nil, raw, "icons", "description", "websiteUrl")
	}
	if t.Lacks&Titles != 0 {
		raw = jsonx.Without(nil, raw, "title")
	}
	return raw
}

// named drops the members of a listed feature that this revision lacks.
func (t *Table) named(raw json.RawMessage) json.RawMessage {
	if t.Lacks&Icons != 0 {
		raw = jsonx.Without(nil, raw, "icons")
	}
	if t.Lacks&Titles != 0 {
		raw = jsonx.Without(nil, raw, "title")
	}
	if t.Lacks&ContentMeta != 0 {
		raw = jsonx.Without(nil, raw, "_meta")
	}
	return t.annotated(raw)
}

func (t *Table) tool(raw json.RawMessage) json.RawMessage {
	title, hasTitle := jsonx.Lookup(raw, "title")
	raw = t.namedTool(raw)
	if out, ok := jsonx.Lookup(raw, "outputSchema"); ok {
		typ, _ := jsonx.Lookup(out, "type")
		if t.Lacks&Structured != 0 || (t.Lacks&StructuredAny != 0 && string(typ) != `"object"`) {
			raw = jsonx.Without(nil, raw, "outputSchema")
		}
	}
	// 2025-03-26 has titles of tools among the annotations (T-65).
	if hasTitle && t.Lacks&Titles != 0 && t.Lacks&ToolAnnotations == 0 {
		notes, ok := jsonx.Lookup(raw, "annotations")
		if !ok {
			notes = json.RawMessage(`{}`)
		}
		if _, ok := jsonx.Lookup(notes, "title"); !ok {
			raw = jsonx.With(nil, raw, "annotations", jsonx.With(nil, notes, "title", title))
		}
	}
	return raw
}

func (t *Table) namedTool(raw json.RawMessage) json.RawMessage {
	drop := []string{}
	if t.Lacks&Icons != 0 {
		drop = append(drop, "icons")
	}
	if t.Lacks&Titles != 0 {
		drop = append(drop, "title")
	}
	if t.Lacks&ContentMeta != 0 {
		drop = append(drop, "_meta")
	}
	if t.Lacks&ToolAnnotations != 0 {
		drop = append(drop, "annotations")
	}
	if t.Lacks&Execution != 0 {
		drop = append(drop, "execution")
	}
	if len(drop) == 0 {
		return raw
	}
	return jsonx.Without(nil, raw, drop...)
}

func (t *Table) prompt(raw json.RawMessage) json.RawMessage {
	raw = t.named(raw)
	if t.Lacks&Titles != 0 {
		raw = mapMember(raw, "arguments", func(arg json.RawMessage) json.RawMessage {
			return jsonx.Without(nil, arg, "title")
		})
	}
	return raw
}

func (t *Table) promptMessage(raw json.RawMessage) json.RawMessage {
	c, ok := jsonx.Lookup(raw, "content")
	if !ok {
		return raw
	}
	return jsonx.With(nil, raw, "content", t.block(c))
}

func (t *Table) toolResult(raw json.RawMessage) json.RawMessage {
	raw = mapMember(raw, "content", t.block)
	value, ok := jsonx.Lookup(raw, "structuredContent")
	if !ok {
		return raw
	}
	if t.Lacks&Structured == 0 && (t.Lacks&StructuredAny == 0 || jsonx.KindOf(value) == '{') {
		return raw
	}
	raw = jsonx.Without(nil, raw, "structuredContent")
	content, _ := jsonx.Lookup(raw, "content")
	for block := range jsonx.Elements(content) {
		if kind, _ := jsonx.Lookup(block, "type"); string(kind) == `"text"` {
			return raw
		}
	}
	// The value is not in a text block yet (T-62, T-63).
	return jsonx.With(nil, raw, "content", appendElement(content, textBlock(string(value))))
}

// block converts one content block.
func (t *Table) block(raw json.RawMessage) json.RawMessage {
	kind, _ := jsonx.Lookup(raw, "type")
	switch string(kind) {
	case `"audio"`:
		if t.Lacks&Audio != 0 {
			return audioAsResource(raw)
		}
	case `"resource_link"`:
		if t.Lacks&ResourceLink != 0 {
			return linkAsText(raw)
		}
		if t.Lacks&Icons != 0 {
			raw = jsonx.Without(nil, raw, "icons")
		}
	case `"resource"`:
		if res, ok := jsonx.Lookup(raw, "resource"); ok && t.Lacks&ContentMeta != 0 {
			raw = jsonx.With(nil, raw, "resource", t.contents(res))
		}
	}
	if t.Lacks&ContentMeta != 0 {
		raw = jsonx.Without(nil, raw, "_meta")
	}
	return t.annotated(raw)
}

func (t *Table) contents(raw json.RawMessage) json.RawMessage {
	if t.Lacks&ContentMeta != 0 {
		raw = jsonx.Without(nil, raw, "_meta")
	}
	return raw
}

func (t *Table) annotated(raw json.RawMessage) json.RawMessage {
	notes, ok := jsonx.Lookup(raw, "annotations")
	if !ok || t.Lacks&LastModified == 0 {
		return raw
	}
	return jsonx.With(nil, raw, "annotations", jsonx.Without(nil, notes, "lastModified"))
}

// audioAsResource keeps the sound as an embedded resource (T-60).
func audioAsResource(raw json.RawMessage) json.RawMessage {
	data, ok := jsonx.Lookup(raw, "data")
	if !ok {
		data = json.RawMessage(`""`)
	}
	mime, _ := jsonx.Lookup(raw, "mimeType")
	out := append([]byte(`{"type":"resource","resource":{"uri":"data:audio","blob":`), data...)
	if mime != nil {
		out = append(append(out, `,"mimeType":`...), mime...)
	}
	return append(out, `}}`...)
}

// linkAsText converts a resource link to text (T-61).
func linkAsText(raw json.RawMessage) json.RawMessage {
	return textBlock(fmt.Sprintf("%s: %s", text(raw, "name"), text(raw, "uri")))
}

func textBlock(s string) json.RawMessage {
	out := jsonx.AppendString([]byte(`{"type":"text","text":`), s)
	return append(out, '}')
}

// text returns a string member, or "" if there is none.
func text(obj json.RawMessage, name string) string {
	raw, ok := jsonx.Lookup(obj, name)
	if !ok {
		return ""
	}
	s, err := jsonx.Unquote(raw)
	if err != nil {
		return ""
	}
	return s
}

// mapMember applies f to each element of an array member.
func mapMember(obj json.RawMessage, name string, f func(json.RawMessage) json.RawMessage) json.RawMessage {
	list, ok := jsonx.Lookup(obj, name)
	if !ok || jsonx.KindOf(list) != '[' {
		return obj
	}
	out := []byte{'['}
	for e := range jsonx.Elements(list) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if jsonx.KindOf(e) == '{' {
			e = f(e)
		}
		out = append(out, e...)
	}
	return jsonx.With(nil, obj, name, append(out, ']'))
}

func appendElement(list, e json.RawMessage) json.RawMessage {
	if jsonx.KindOf(list) != '[' {
		return append(append([]byte{'['}, e...), ']')
	}
	out := []byte{'['}
	for old := range jsonx.Elements(list) {
		out = append(append(out, old...), ',')
	}
	return append(append(out, e...), ']')
}
