package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
)

// reader reads a request and keeps its first error. Each error message begins with the path, as the
// real servers' messages do.
type reader struct{ err error }

func (r *reader) wrong(path, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
	}
}

// object reads an object that has no members but the known ones.
func (r *reader) object(path string, v any, known ...string) object {
	o, ok := v.(object)
	if !ok {
		r.wrong(path, "expected an object, got %T", v)
		return object{}
	}
	for name := range o {
		if !slices.Contains(known, name) {
			r.wrong(path+"."+name, "unknown parameter")
		}
	}
	return o
}

func (r *reader) text(path string, v any) string {
	s, ok := v.(string)
	if !ok {
		r.wrong(path, "expected a string, got %T", v)
	}
	return s
}

func (r *reader) list(path string, v any) []any {
	l, ok := v.([]any)
	if !ok {
		r.wrong(path, "expected an array, got %T", v)
	}
	return l
}

func (r *reader) oneOf(path, v string, allowed ...string) string {
	if !slices.Contains(allowed, v) {
		r.wrong(path, "invalid value %q, expected one of %q", v, allowed)
	}
	return v
}

func (r *reader) number(path string, v any, least, most float64) {
	if n, ok := v.(float64); v != nil && (!ok || n < least || n > most) {
		r.wrong(path, "expected a number from %g to %g, got %v", least, most, v)
	}
}

// thinking refuses parameters that reasoning models do not accept.
func (r *reader) thinking(model string, o object, parameters ...string) {
	if !thinks.MatchString(model) || strings.HasPrefix(model, "gpt-5-chat") {
		return
	}
	for _, name := range parameters {
		if o[name] != nil {
			r.wrong(name, "unsupported parameter: it is not supported with the model %q", model)
		}
	}
}

var (
	thinks  = regexp.MustCompile(`^(o[134]|gpt-5)(-|\.|$)`)
	name64  = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	anyID   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	keyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

func (r *reader) name(path string, v any) string {
	s := r.text(path, v)
	if !name64.MatchString(s) {
		r.wrong(path, "%q does not match pattern %s", s, name64)
	}
	return s
}

// arguments reads the arguments of a repeated call: the JSON of an object.
func (r *reader) arguments(path string, v any) {
	var o object
	if err := json.Unmarshal([]byte(r.text(path, v)), &o); err != nil {
		r.wrong(path, "not the JSON of an object: %v", err)
	}
}

// parameters reads the schema of a tool.
func (r *reader) parameters(path string, v any) {
	schema, ok := v.(object)
	if !ok || schema["type"] != "object" {
		r.wrong(path, "schema must be a JSON Schema of 'type: \"object\"', got %v", schema["type"])
		return
	}
	for _, not := range []string{"oneOf", "anyOf", "allOf", "enum", "not", "$ref"} {
		if _, has := schema[not]; has {
			r.wrong(path, "schema must not have %q at the top level", not)
		}
	}
	properties, ok := schema["properties"].(object)
	if !ok {
		r.wrong(path, "object schema missing properties")
	}
	for key := range properties {
		if !keyName.MatchString(key) {
			r.wrong(path+".properties", "property keys should match pattern %s: %q", keyName, key)
		}
	}
	r.schema(path, schema, schema, 0)
}

// schema checks that keywords are well formed in draft 2020-12, as far as the real servers do.
func (r *reader) schema(path string, v any, root object, depth int) {
	s, ok := v.(object)
	if !ok {
		if _, ok := v.(bool); !ok {
			r.wrong(path, "%v is not a schema", v)
		}
		return
	}
	if depth > 100 {
		r.wrong(path, "too deep")
		return
	}
	for key, value := range s {
		at := path + "." + key
		switch key {
		case "type":
			switch value.(type) {
			case string, []any:
			default:
				r.wrong(at, "%v is not a type", value)
			}
		case "properties", "patternProperties", "$defs", "definitions":
			members, ok := value.(object)
			if !ok {
				r.wrong(at, "expected an object")
			}
			for name, sub := range members {
				r.schema(at+"."+name, sub, root, depth+1)
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames":
			r.schema(at, value, root, depth+1)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			for i, sub := range r.list(at, value) {
				r.schema(fmt.Sprintf("%s.%d", at, i), sub, root, depth+1)
			}
		case "required":
			for i, name := range r.list(at, value) {
				r.text(fmt.Sprintf("%s.%d", at, i), name)
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems":
			if _, ok := value.(float64); !ok {
				r.wrong(at, "JSON schema is invalid: it must match draft 2020-12: %v is not a number", value)
			}
		case "$ref":
			ref := r.text(at, value)
			name, ok := strings.CutPrefix(ref, "#/$defs/")
			defs, _ := root["$defs"].(object)
			if !ok {
				name, ok = strings.CutPrefix(ref, "#/definitions/")
				defs, _ = root["definitions"].(object)
			}
			if _, found := defs[name]; !ok || !found {
				r.wrong(at, "reference to nothing: %q", ref)
			}
		}
	}
}

// dataURL reads a picture or file in a URL, and returns its type.
func (r *reader) dataURL(path string, v any) string {
	kind, data, ok := strings.Cut(strings.TrimPrefix(r.text(path, v), "data:"), ";base64,")
	if !ok {
		r.wrong(path, "expected a data URL in base64")
	}
	r.base64(path, data)
	return kind
}

func (r *reader) base64(path string, v any) {
	if _, err := base64.StdEncoding.DecodeString(r.text(path, v)); err != nil {
		r.wrong(path, "invalid base64: %v", err)
	}
}

// sealed returns the signature that must come back with a thought.
func sealed(thought string) string {
	h := fnv.New64a()
	h.Write([]byte(thought))
	return fmt.Sprintf("sealed-%x", h.Sum64())
}
