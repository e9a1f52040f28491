package schema

import (
	"encoding/json"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// plain tells whether raw is a 2020-12 schema that is seen at a glance to be
// valid and within the bounds of Compile, as those of most tools are. Such a
// schema is compiled when it is first used: a server with a thousand tools
// starts without compiling any. False says nothing about raw.
func plain(raw json.RawMessage) bool {
	if len(raw) > maxSchemaBytes || jsonx.Valid(raw, maxDepth) != nil {
		return false
	}
	p := plainness{}
	return p.schema(raw) && p.subschemas <= maxSubschemas
}

// plainness counts the subschemas on the way.
type plainness struct{ subschemas int }

func (p *plainness) schema(raw json.RawMessage) bool {
	p.subschemas++
	switch jsonx.KindOf(raw) {
	case 't', 'f':
		return true
	case '{':
		for name, value := range jsonx.Members(raw) {
			if !p.keyword(string(name), value) {
				return false
			}
		}
		return true
	}
	return false
}

// keyword knows the keywords that need no more than a look at their value. Not
// among them are those that name other schemas, and patterns.
func (p *plainness) keyword(name string, value json.RawMessage) bool {
	kind := jsonx.KindOf(value)
	switch name {
	case "$schema":
		return string(value) == `"https://json-schema.org/draft/2020-12/schema"`
	case "type":
		return typeWords[string(value)] || kind == '[' && plainTypes(value)
	case "title", "description", "format", "$comment":
		return kind == '"'
	case "deprecated", "readOnly", "writeOnly", "uniqueItems":
		return kind == 't' || kind == 'f'
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return kind == '0' && plainData(value)
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return kind == '0' && len(value) < 10 && strings.Trim(string(value), "0123456789") == ""
	case "const", "default":
		return plainData(value)
	case "enum", "examples":
		return kind == '[' && plainData(value)
	case "required":
		return kind == '[' && plainNames(value)
	case "items", "additionalProperties", "not":
		return p.schema(value)
	case "properties":
		if kind != '{' {
			return false
		}
		for _, sub := range jsonx.Members(value) {
			if !p.schema(sub) {
				return false
			}
		}
		return true
	case "anyOf", "oneOf", "allOf":
		n := 0
		for sub := range jsonx.Elements(value) {
			if n++; !p.schema(sub) {
				return false
			}
		}
		return n > 0
	}
	return strings.HasPrefix(name, "x-") && plainData(value)
}

// typeWords are the values of type, as they stand in the text.
var typeWords = map[string]bool{
	`"null"`: true, `"boolean"`: true, `"object"`: true, `"array"`: true, `"number"`: true, `"integer"`: true, `"string"`: true,
}

func plainTypes(list json.RawMessage) bool {
	n := 0
	for e := range jsonx.Elements(list) {
		if n++; !typeWords[string(e)] {
			return false
		}
	}
	return n > 0 && plainNames(list)
}

// plainData tells whether value is a scalar of common size, or a list of such.
func plainData(value json.RawMessage) bool {
	switch jsonx.KindOf(value) {
	case '{':
		return false
	case '[':
		for e := range jsonx.Elements(value) {
			if k := jsonx.KindOf(e); k == '[' || !plainData(e) {
				return false
			}
		}
	case '0':
		return len(value) <= 20 && strings.Trim(string(value), "-.0123456789") == ""
	}
	return true
}

// plainNames tells whether value is a short list of different strings, written
// without escapes.
func plainNames(value json.RawMessage) bool {
	var names [32]string
	n := 0
	for e := range jsonx.Elements(value) {
		if n == len(names) || e[0] != '"' || strings.Contains(string(e), `\`) {
			return false
		}
		for _, other := range names[:n] {
			if other == string(e) {
				return false
			}
		}
		names[n] = string(e)
		n++
	}
	return true
}
