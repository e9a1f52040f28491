package wirecheck

import (
	"bytes"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/yosida95/uritemplate/v3"
)

//go:embed schemas/*.json
var files embed.FS

// The revisions, oldest first.
const (
	rev2411 = "2024-11-05"
	rev2503 = "2025-03-26"
	rev2506 = "2025-06-18"
	rev2511 = "2025-11-25"
	rev2607 = "2026-07-28"
)

var revisions = []string{rev2411, rev2503, rev2506, rev2511, rev2607}

// Revisions returns the supported revisions, oldest first.
func Revisions() []string { return slices.Clone(revisions) }

// side is the sender of a message.
type side int

const (
	client side = iota
	server
)

func (s side) other() side { return 1 - s }

func (s side) String() string { return [...]string{"client", "server"}[s] }

// spec is the loaded schema.json of one revision.
type spec struct {
	revision      string
	modern        bool // 2026-07-28 and later: no handshake, resultType
	url           string
	defs          map[string]any
	pointer       string               // of the definitions: "#/definitions/" or "#/$defs/"
	requests      [2]map[string]string // by sender: method to definition
	notifications [2]map[string]string // by sender: method to definition
	errorsByCode  map[int64]typedError

	mu       sync.Mutex
	compiler *jsonschema.Compiler          // guarded by mu
	compiled map[string]*jsonschema.Schema // guarded by mu
}

// typedError is a definition that a code selects: of the whole response, or of
// its error member.
type typedError struct {
	def   string
	whole bool
}

var specs = func() map[string]func() *spec {
	m := make(map[string]func() *spec)
	for _, revision := range revisions {
		m[revision] = sync.OnceValue(func() *spec { return load(revision) })
	}
	return m
}()

// read reads an embedded schema. It panics on a fault in it: no input can cause one.
func read(name string) map[string]any {
	data, err := files.ReadFile("schemas/" + name + ".json")
	if err != nil {
		panic(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		panic(fmt.Errorf("schema %s: %w", name, err))
	}
	return value.(map[string]any)
}

// extend adds the definitions of the tasks extension; those of the core take precedence.
func (s *spec) extend() {
	for name, def := range read("ext-tasks")["$defs"].(map[string]any) {
		if s.defs[name] == nil {
			s.defs[name] = def
		}
	}
}

// tasks are the messages of the tasks extension.
func (s *spec) tasks() {
	s.requests[client]["tasks/get"] = "GetTaskRequest"
	s.requests[client]["tasks/update"] = "UpdateTaskRequest"
	s.requests[client]["tasks/cancel"] = "CancelTaskRequest"
	s.notifications[server]["notifications/tasks"] = "TaskStatusNotification"
}

// load makes the spec of a revision.
func load(revision string) *spec {
	doc := read(revision)
	s := &spec{
		revision: revision, modern: revision >= rev2607,
		url: "mcp:" + revision, compiled: make(map[string]*jsonschema.Schema),
	}
	for _, key := range []string{"definitions", "$defs"} {
		if defs, ok := doc[key].(map[string]any); ok {
			s.defs, s.pointer = defs, "#/"+key+"/"
		}
	}
	if s.modern {
		s.extend()
	}
	correct(doc)
	for sender, prefix := range []string{"Client", "Server"} {
		s.requests[sender] = s.methods(prefix + "Request")
		s.notifications[sender] = s.methods(prefix + "Notification")
	}
	if s.modern {
		s.tasks()
	}
	s.errorsByCode = s.typedErrors()

	s.compiler = jsonschema.NewCompiler()
	s.compiler.AssertFormat()
	s.compiler.RegisterFormat(&jsonschema.Format{Name: "byte", Validate: isBase64})
	// The library parses an expanded template as a URL, and so refuses an expression in place of
	// the host.
	s.compiler.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: isTemplate})
	if err := s.compiler.AddResource(s.url, doc); err != nil {
		panic(fmt.Errorf("schema %s: %w", revision, err))
	}
	return s
}

// correct fixes errors in the published, generated schemas: for "string, number or boolean" they
// have integer instead of number (the content of ElicitResult; JSONValue, which also lacks null).
// In older drafts the bounds of NumberSchema were integers too; the copies here are right, but
// are corrected too in case they are replaced.
func correct(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			correct(item)
		}
	case map[string]any:
		for name, member := range v {
			switch name {
			case "NumberSchema":
				if props, ok := at(member, "properties").(map[string]any); ok {
					for _, bound := range []string{"minimum", "maximum", "default"} {
						if p, ok := props[bound].(map[string]any); ok {
							p["type"] = "number"
						}
					}
				}
			case "JSONValue":
				if kinds, ok := at(member, "anyOf").([]any); ok {
					member.(map[string]any)["anyOf"] = append(kinds, map[string]any{"type": "null"})
				}
			}
			correct(member)
		}
		if types, ok := v["type"].([]any); ok && slices.Contains(types, any("boolean")) {
			if i := slices.Index(types, any("integer")); i >= 0 {
				types[i] = "number"
			}
		}
	}
}

func isBase64(v any) error {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(s); err != nil {
		return errors.New("not standard base64")
	}
	return nil
}

func isTemplate(v any) error {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	_, err := uritemplate.New(s)
	return err
}

// at returns the value at a path of member names, or nil if one is missing.
func at(v any, names ...string) any {
	for _, name := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// methods maps the method of each definition in a union to its name. A union of one member has no
// anyOf.
func (s *spec) methods(union string) map[string]string {
	out := make(map[string]string)
	def := s.defs[union]
	if method, ok := at(def, "properties", "method", "const").(string); ok {
		out[method] = union
	}
	list, _ := at(def, "anyOf").([]any)
	for _, item := range list {
		ref, _ := at(item, "$ref").(string)
		name := strings.TrimPrefix(ref, s.pointer)
		if method, ok := at(s.defs[name], "properties", "method", "const").(string); ok {
			out[method] = name
		}
	}
	return out
}

// typedErrors finds the definitions that fix an error code.
func (s *spec) typedErrors() map[int64]typedError {
	out := make(map[int64]typedError)
	for name, def := range s.defs {
		if code, ok := number(at(def, "properties", "code", "const")); ok {
			out[code] = typedError{def: name}
		}
		all, _ := at(def, "properties", "error", "allOf").([]any)
		for _, part := range all {
			if code, ok := number(at(part, "properties", "code", "const")); ok {
				out[code] = typedError{def: name, whole: true}
			}
		}
	}
	return out
}

// resultOf returns the definition of the result of a request definition:
// XRequest is answered by XResult where there is one, else by EmptyResult.
func (s *spec) resultOf(request string) string {
	name := strings.TrimSuffix(request, "Request") + "Result"
	if _, ok := s.defs[name]; ok {
		return name
	}
	return "EmptyResult"
}

// has reports whether the revision defines a type.
func (s *spec) has(def string) bool { return s.defs[def] != nil }

// validate checks value, which is at pointer in its frame, against a definition.
func (s *spec) validate(def, pointer string, value any) error {
	schema, err := s.compile(def)
	if err != nil {
		return err
	}
	if err := schema.Validate(value); err != nil {
		return &Fault{Revision: s.revision, Type: def, Pointer: pointer, Text: describe(err, pointer)}
	}
	return nil
}

func (s *spec) compile(def string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if schema := s.compiled[def]; schema != nil {
		return schema, nil
	}
	schema, err := s.compiler.Compile(s.url + s.pointer + def)
	if err != nil {
		return nil, fmt.Errorf("compile %s of %s: %w", def, s.revision, err)
	}
	s.compiled[def] = schema
	return schema, nil
}
