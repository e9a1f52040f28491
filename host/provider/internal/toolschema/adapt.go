// Package toolschema adapts the JSON Schemas of tools to the APIs of language models.
package toolschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	maxNodes    = 5000 // schemas within the schema of one tool, with what references repeat
	maxDepth    = 40
	maxBranches = 200  // alternatives at its top
	maxWords    = 2000 // bytes of the rules in words
)

// Adapt returns a schema of arguments that the APIs accept, and the rules that it could not
// express, in words for the description, or "" if there are none.
//
// The APIs require an object at the top, without alternatives, and keywords that are well formed
// in JSON Schema 2020-12. Many other servers do not follow references, so with inline they are
// replaced by their targets; where that does not end, any value is allowed.
//
// Every object that fits the original fits the result. Rules that are not allowed at the top are
// returned in words; invalid keywords and broken references are left out.
func Adapt(raw json.RawMessage, inline bool) (map[string]any, string) {
	open := func() map[string]any { return map[string]any{"type": "object", "properties": map[string]any{}} }
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var root any
	if dec.Decode(&root) != nil {
		return open(), ""
	}
	members, ok := root.(map[string]any)
	if !ok { // true
		return open(), ""
	}
	a := &adapter{root: members, inline: inline, draft: draftOf(members["$schema"])}
	if !inline { // what is lost of any definition is known before there are references to it
		a.schemas(members["$defs"], nil)
		a.schemas(members["definitions"], nil)
		a.vague, a.lost, a.nodes = a.lost > 0, 0, 0
	}
	out, ok := a.schema(members, nil).(map[string]any)
	if !ok {
		return open(), a.said()
	}
	if ref, ok := out["$ref"]; ok { // none at the top
		delete(out, "$ref")
		list, _ := out["allOf"].([]any)
		out["allOf"] = append(slices.Clip(list), map[string]any{"$ref": ref})
	}
	a.fold(out, 0)
	delete(out, "$schema")
	delete(out, "$id")
	if kind, ok := out["type"].(string); ok && kind != "object" { // no object fits it, whatever is said
		return open(), ""
	}
	if rules, ok := members["dependencies"]; ok {
		a.say("The arguments must fit this schema too:", map[string]any{"dependencies": rules})
	}
	out["type"] = "object"
	properties, _ := out["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
		out["properties"] = properties
	}
	for _, name := range sorted(properties) {
		if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "" {
			a.say(fmt.Sprintf("There is an argument %q too, of this schema:", name), properties[name])
			delete(properties, name)
			delete(out, "additionalProperties")
			delete(out, "unevaluatedProperties")
			if required, ok := out["required"].([]any); ok {
				setList(out, "required", slices.DeleteFunc(slices.Clone(required), func(r any) bool { return r == name }))
			}
		}
	}
	return sealed(out), a.said()
}

// sealed writes the members of a schema as JSON: the libraries of providers would take a
// json.Number for a text.
func sealed(schema map[string]any) map[string]any {
	for name, v := range schema {
		if text, err := json.Marshal(v); err == nil {
			schema[name] = json.RawMessage(text)
		}
	}
	return schema
}

// since holds the draft that introduced each keyword. Older drafts ignore it.
var since = map[string]int{
	"const": 6, "contains": 6, "propertyNames": 6, "if": 7, "then": 7, "else": 7,
	"dependentSchemas": 2019, "dependentRequired": 2019, "minContains": 2019, "maxContains": 2019, "unevaluatedProperties": 2019, "unevaluatedItems": 2019,
	"prefixItems": 2020, "$dynamicRef": 2020,
}

// besideRef holds the keywords that count beside a reference in drafts up to 7.
var besideRef = map[string]bool{"$defs": true, "definitions": true, "description": true, "title": true, "default": true}

func draftOf(uri any) int {
	text, _ := uri.(string)
	for name, draft := range map[string]int{"draft-04": 4, "draft-06": 6, "draft-07": 7, "2019-09": 2019} {
		if strings.Contains(text, name) {
			return draft
		}
	}
	return 2020
}

type adapter struct {
	root   map[string]any
	inline bool
	draft  int // of JSON Schema, by its number or year
	nodes  int
	lost   int  // keywords that bound something and were left out
	vague  bool // something was left out of a definition

	branches int // alternatives at the top that were folded
	words    []string
}

// say records a rule for the description.
func (a *adapter) say(what string, schema any) {
	text, err := json.Marshal(schema)
	if err == nil {
		a.words = append(a.words, what+" "+string(text))
	}
}

func (a *adapter) said() string {
	text := strings.Join(a.words, "\n")
	if len(text) > maxWords {
		return strings.ToValidUTF8(text[:maxWords], "") + " …"
	}
	return text
}

// schema returns a copy of a schema without invalid keywords. refs are the references that led
// here.
//
// To leave something out makes a schema wider, but one wider below "not", "if" or "oneOf" is
// narrower above. So these go when anything below them was left out.
func (a *adapter) schema(v any, refs []string) any {
	if allow, ok := v.(bool); ok {
		return allow
	}
	in, ok := v.(map[string]any)
	a.nodes++
	if !ok || a.nodes > maxNodes {
		a.lost++
		return map[string]any{}
	}
	before := a.lost
	out := map[string]any{}
	ref, refers := in["$ref"].(string)
	for _, key := range sorted(in) {
		if since[key] > a.draft || refers && a.draft <= 7 && !besideRef[key] {
			continue // it means nothing there
		}
		value, was, n := in[key], a.lost, len(out)
		switch key {
		case "$defs", "definitions":
			if !a.inline {
				a.put(out, key, a.schemas(value, refs))
				a.lost = was // what refers to it is not wider than it
			}
			continue
		case "properties", "patternProperties", "dependentSchemas":
			a.put(out, key, a.schemas(value, refs))
		case "items":
			list, ok := value.([]any) // of drafts before 2020-12
			if !ok {
				out[key] = a.schema(value, refs)
				break
			}
			if len(list) > 0 {
				out["prefixItems"] = a.list(list, refs)
			}
			if rest, ok := in["additionalItems"]; ok {
				out["items"] = a.schema(rest, refs)
			}
			continue
		case "additionalProperties", "propertyNames", "then", "else":
			out[key] = a.schema(value, refs)
		case "not", "if", "contains", "unevaluatedItems", "unevaluatedProperties":
			if out[key] = a.schema(value, refs); a.lost > was {
				delete(out, key)
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			if list, ok := value.([]any); ok && len(list) > 0 {
				adapted := a.list(list, refs)
				if key == "oneOf" && a.lost > was {
					if _, taken := in["anyOf"]; taken {
						continue
					}
					key = "anyOf"
				}
				out[key] = adapted
			}
		case "type":
			a.put(out, key, types(value))
		case "required":
			a.put(out, key, names(value))
		case "dependentRequired":
			if of, ok := value.(map[string]any); ok {
				needs := map[string]any{}
				for name, v := range of {
					if list := names(v); list != nil {
						needs[name] = list
					} else {
						a.lost++
					}
				}
				out[key] = needs
			}
		case "enum":
			if list, ok := value.([]any); ok && len(list) > 0 {
				out[key] = list
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
			"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
			if _, ok := value.(json.Number); ok {
				out[key] = value
			}
		case "format":
			if _, ok := value.(string); ok {
				out[key] = value
			}
			if a.draft <= 7 {
				a.lost++ // it is an annotation since
			}
		case "description", "title", "pattern", "$schema", "$id", "contentEncoding", "contentMediaType":
			if _, ok := value.(string); ok {
				out[key] = value
			}
		case "uniqueItems":
			if _, ok := value.(bool); ok {
				out[key] = value
			}
		case "const", "default":
			out[key] = value
		case "$ref":
			continue // below
		case "dependencies", "$dynamicRef", "$recursiveRef": // they say something, and go
		default:
			continue // it means nothing to JSON Schema, and something may refuse it
		}
		if len(out) == n {
			a.lost++
		}
	}
	if out["if"] == nil {
		delete(out, "then")
		delete(out, "else")
	}
	if refers {
		a.refer(out, ref, refs)
	}
	if a.lost > before { // they see what was left out beside them
		delete(out, "unevaluatedItems")
		delete(out, "unevaluatedProperties")
		if out["contains"] == nil {
			delete(out, "minContains")
			delete(out, "maxContains")
		}
	}
	return out
}

// refer replaces a reference in a schema with its target.
func (a *adapter) refer(out map[string]any, ref string, refs []string) {
	target := a.lookup(ref)
	if target == nil || slices.Contains(refs, ref) || len(refs) > maxDepth {
		a.lost++
		return
	}
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if !ok {
		name, ok = strings.CutPrefix(ref, "#/definitions/")
	}
	if ok && !a.inline && !strings.Contains(name, "/") {
		out["$ref"] = ref
		if a.vague {
			a.lost++
		}
		return
	}
	found := a.schema(target, append(slices.Clip(refs), ref))
	members, ok := found.(map[string]any)
	for key := range out {
		ok = ok && (key == "description" || key == "title" || key == "default")
	}
	if !ok {
		list, _ := out["allOf"].([]any)
		out["allOf"] = append(slices.Clip(list), found)
		return
	}
	for key, v := range members {
		if _, taken := out[key]; !taken {
			out[key] = v
		}
	}
}

// put sets a member, unless the value is nil.
func (a *adapter) put(out map[string]any, key string, value any) {
	switch v := value.(type) {
	case nil:
	case []any:
		if v != nil {
			out[key] = v
		}
	case map[string]any:
		if v != nil {
			out[key] = v
		}
	default:
		out[key] = v
	}
}

func (a *adapter) schemas(v any, refs []string) map[string]any {
	in, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	out := make(map[string]any, len(in))
	for _, name := range sorted(in) {
		out[name] = a.schema(in[name], refs)
	}
	return out
}

func (a *adapter) list(in []any, refs []string) []any {
	out := make([]any, len(in))
	for i, v := range in {
		out[i] = a.schema(v, refs)
	}
	return out
}

// lookup returns the target of a reference within the schema, or nil if there is none.
func (a *adapter) lookup(ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil
	}
	var at any = a.root
	if pointer == "" {
		return at
	}
	parts := strings.Split(pointer, "/")
	if parts[0] != "" {
		return nil
	}
	for _, part := range parts[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch v := at.(type) {
		case map[string]any:
			at = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

// fold removes the keywords that the APIs refuse at the top of an object schema, and keeps their
// rules in the properties where possible.
func (a *adapter) fold(out map[string]any, depth int) {
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, ok := out[key].([]any)
		if !ok {
			continue
		}
		delete(out, key)
		delete(out, "additionalProperties")
		delete(out, "unevaluatedProperties")
		whole, _ := json.Marshal(list)
		words := a.words
		var branches []map[string]any
		for _, v := range list {
			before := a.words
			branch := a.branch(v, depth+1)
			if branch != nil {
				branches = append(branches, branch)
			}
			if key == "allOf" && hasRules(branch) {
				a.words = before
				a.say("The arguments must fit this schema too:", v)
			}
		}
		properties, _ := out["properties"].(map[string]any)
		if properties == nil {
			properties = map[string]any{}
		}
		a.foldProperties(properties, branches, key == "allOf")
		if len(properties) > 0 {
			out["properties"] = properties
		}
		var required []any
		for i, b := range branches {
			theirs, _ := b["required"].([]any)
			switch {
			case key == "allOf":
				required = append(required, theirs...)
			case i == 0:
				required = slices.Clone(theirs)
			default:
				required = slices.DeleteFunc(required, func(r any) bool { return !slices.Contains(theirs, r) })
			}
		}
		own, _ := out["required"].([]any)
		for _, name := range required {
			if !slices.Contains(own, name) {
				own = append(slices.Clip(own), name)
			}
		}
		setList(out, "required", own)
		if key != "allOf" {
			a.words = words // those of the branches hold in them alone
			count := map[string]string{"anyOf": "at least", "oneOf": "exactly"}[key]
			a.say("The arguments must fit "+count+" one of these schemas:", json.RawMessage(whole))
		}
	}
	rules := map[string]any{}
	for _, key := range []string{"not", "enum", "const", "if", "then", "else"} {
		if v, ok := out[key]; ok {
			rules[key] = v
			delete(out, key)
			delete(out, "unevaluatedProperties")
		}
	}
	if len(rules) > 0 {
		a.say("The arguments must fit this schema too:", rules)
	}
}

// foldProperties adds the properties of the branches: of all of them, or of those of which one
// must fit.
func (a *adapter) foldProperties(properties map[string]any, branches []map[string]any, all bool) {
	found := map[string]any{}
	for _, b := range branches {
		theirs, _ := b["properties"].(map[string]any)
		for _, name := range sorted(theirs) {
			found[name] = either(found[name], theirs[name], all)
		}
	}
	for _, name := range sorted(found) {
		for _, b := range branches {
			theirs, _ := b["properties"].(map[string]any)
			if _, told := theirs[name]; !told && !all && b["additionalProperties"] != false {
				found[name] = either(found[name], map[string]any{}, false) // there it is anything
				break
			}
		}
		if own, ok := properties[name]; ok {
			properties[name] = either(own, found[name], true)
		} else {
			properties[name] = found[name]
		}
	}
}

// branch returns an alternative at the top as an object schema without alternatives of its own,
// nil if no object fits it.
func (a *adapter) branch(v any, depth int) map[string]any {
	if v == false {
		return nil
	}
	b, ok := v.(map[string]any)
	a.branches++
	if !ok || depth > 8 || a.branches > maxBranches {
		return map[string]any{}
	}
	if kind, ok := b["type"].(string); ok && kind != "object" {
		return nil
	}
	b = maps.Clone(b)
	if ref, ok := b["$ref"].(string); ok {
		delete(b, "$ref")
		list, _ := b["allOf"].([]any)
		b["allOf"] = append(slices.Clip(list), a.schema(a.lookup(ref), nil))
	}
	if properties, ok := b["properties"].(map[string]any); ok {
		b["properties"] = maps.Clone(properties)
	}
	a.fold(b, depth)
	return b
}

// hasRules reports whether a branch has rules that properties cannot express.
func hasRules(branch map[string]any) bool {
	for key := range branch {
		switch key {
		case "type", "properties", "required", "title", "description", "default", "format", "$schema", "$id", "$defs", "definitions":
		default:
			return true
		}
	}
	return false
}

// either returns the schema of a property that is in two schemas.
func either(x, y any, and bool) any {
	switch {
	case x == nil:
		return y
	case y == nil || same(x, y):
		return x
	case and:
		return map[string]any{"allOf": []any{x, y}}
	}
	if m, ok := x.(map[string]any); ok && len(m) == 1 {
		if list, ok := m["anyOf"].([]any); ok {
			if slices.ContainsFunc(list, func(v any) bool { return same(v, y) }) {
				return x
			}
			return map[string]any{"anyOf": append(slices.Clip(list), y)}
		}
	}
	return map[string]any{"anyOf": []any{x, y}}
}

func same(x, y any) bool {
	a, _ := json.Marshal(x)
	b, _ := json.Marshal(y)
	return bytes.Equal(a, b)
}

func setList(out map[string]any, key string, list []any) {
	if len(list) == 0 {
		delete(out, key)
		return
	}
	out[key] = list
}

// types returns the value of "type", or nil if it is not valid.
func types(v any) any {
	known := []string{"object", "array", "string", "number", "integer", "boolean", "null"}
	switch v := v.(type) {
	case string:
		if slices.Contains(known, v) {
			return v
		}
	case []any:
		for i, t := range v {
			s, ok := t.(string)
			if !ok || !slices.Contains(known, s) || slices.Contains(v[:i], t) {
				return nil
			}
		}
		if len(v) > 0 {
			return v
		}
	}
	return nil
}

// names returns the strings of a list, each once, or nil if it is not a list of strings.
func names(v any) []any {
	list, _ := v.([]any)
	var out []any
	for _, s := range list {
		if _, ok := s.(string); !ok {
			return nil
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func sorted(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
