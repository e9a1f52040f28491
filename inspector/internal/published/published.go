// Package published checks messages against the published schema of their revision. The schemas are compiled when they are
// first needed, each definition by itself.
package published

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/schema"
)

// packed are the schemas of all revisions by their names, without descriptions, compressed: TestPacked makes the file.
//
//go:embed schemas.json.gz
var packed []byte

// set is the definitions of a revision.
type set struct {
	pointer string // "$defs" or "definitions"
	defs    map[string]json.RawMessage
	methods [2][2]map[string]string // by sender (client, server) and kind (request, notification): the definition of a method

	mu       sync.Mutex
	compiled map[string]*schema.Validator // nil: it cannot be compiled; guarded by mu
}

// sets are the definitions by revision.
var sets = sync.OnceValue(func() map[string]*set {
	all := map[string]*set{}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return all
	}
	text, err := io.ReadAll(io.LimitReader(z, 16<<20))
	var docs map[string]map[string]json.RawMessage
	if err != nil || json.Unmarshal(text, &docs) != nil {
		return all
	}
	for name, doc := range docs {
		s := &set{compiled: map[string]*schema.Validator{}}
		for _, pointer := range []string{"$defs", "definitions"} {
			if defs, ok := doc[pointer]; ok && json.Unmarshal(defs, &s.defs) == nil {
				s.pointer = pointer
			}
		}
		for sender, who := range []string{"Client", "Server"} {
			for kind, what := range []string{"Request", "Notification"} {
				s.methods[sender][kind] = s.union(who + what)
			}
		}
		all[name] = s
	}
	return all
})

// union maps the methods of the definitions in a union to their names.
func (s *set) union(name string) map[string]string {
	out := map[string]string{}
	add := func(def string) {
		raw, _ := jsonx.LookupPath(s.defs[def], "properties", "method", "const")
		if method, err := jsonx.Unquote(raw); err == nil {
			out[method] = def
		}
	}
	add(name)
	anyOf, _ := jsonx.Lookup(s.defs[name], "anyOf")
	for item := range jsonx.Elements(anyOf) {
		raw, _ := jsonx.Lookup(item, "$ref")
		ref, _ := jsonx.Unquote(raw)
		add(ref[strings.LastIndexByte(ref, '/')+1:])
	}
	return out
}

// Check returns what the schema of a revision has against a message; method is that of its request. It reports false if the
// message cannot be checked: the revision or the method is not in the schemas, or the schema cannot be compiled.
func Check(revision, method string, msg []byte, fromClient bool) (faults []string, checked bool) {
	s := sets()[revision]
	if s == nil || jsonx.KindOf(msg) != '{' {
		return nil, false
	}
	sender := 1
	if fromClient {
		sender = 0
	}
	_, isMethod := jsonx.Lookup(msg, "method")
	id, isRequest := jsonx.Lookup(msg, "id")
	result, isResult := jsonx.Lookup(msg, "result")
	_, isError := jsonx.Lookup(msg, "error")
	switch {
	case isMethod && isRequest:
		if def := s.methods[sender][0][method]; def != "" {
			return s.check(def, msg, "")
		}
	case isMethod:
		if def := s.methods[sender][1][method]; def != "" {
			return s.check(def, msg, "")
		}
	case isError:
		for _, def := range []string{"JSONRPCErrorResponse", "JSONRPCError"} {
			if s.defs[def] != nil && string(id) != "null" && len(id) > 0 {
				return s.check(def, msg, "")
			}
		}
	case isResult:
		def := s.methods[1-sender][0][method]
		if def == "" {
			return nil, false
		}
		of := strings.TrimSuffix(def, "Request") + "Result"
		if kind, _ := jsonx.Lookup(result, "resultType"); string(kind) == `"input_required"` {
			of = "InputRequiredResult"
		} else if _, task := jsonx.Lookup(result, "task"); task && s.defs["CreateTaskResult"] != nil && method == "tools/call" {
			of = "CreateTaskResult"
		}
		if s.defs[of] == nil {
			of = "EmptyResult"
		}
		return s.check(of, result, "result")
	}
	return nil, false
}

// check checks a value against a definition.
func (s *set) check(def string, value []byte, at string) ([]string, bool) {
	v := s.compile(def)
	if v == nil {
		return nil, false
	}
	err := v.Validate(value)
	if err == nil {
		return nil, true
	}
	var invalid *schema.ValidationError
	if !errors.As(err, &invalid) {
		return []string{def + ": " + err.Error()}, true
	}
	var faults []string
	for _, f := range invalid.Faults {
		f.Path = strings.TrimSuffix(at+"."+f.Path, ".")
		f.Path = strings.TrimPrefix(f.Path, ".")
		faults = append(faults, def+": "+f.String())
	}
	return faults, true
}

func (s *set) compile(def string) *schema.Validator {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.compiled[def]; ok {
		return v
	}
	v, err := schema.Compile(s.document(def))
	if err != nil {
		v = nil
	}
	s.compiled[def] = v
	return v
}

// document returns a schema with the definitions that one needs.
func (s *set) document(def string) json.RawMessage {
	needed := map[string]bool{}
	var need func(name string)
	need = func(name string) {
		if needed[name] || s.defs[name] == nil {
			return
		}
		needed[name] = true
		mark := `"#/` + s.pointer + `/`
		for rest := string(s.defs[name]); ; {
			_, after, ok := strings.Cut(rest, mark)
			if !ok {
				return
			}
			name, after, _ := strings.Cut(after, `"`)
			need(name)
			rest = after
		}
	}
	need(def)
	out := []byte(`{"$ref":"#/` + s.pointer + `/` + def + `","` + s.pointer + `":{`)
	names := make([]string, 0, len(needed))
	for name := range needed {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(jsonx.AppendString(out, name), ':'), s.defs[name]...)
	}
	return append(out, "}}"...)
}
