package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/schema"
)

// A feature that cannot work is refused when it is registered. The error names the feature, the
// fault and the cure.

// errNoHandler is the error for a feature that is registered with a nil function.
var errNoHandler = errors.New("the handler is nil; give the function that does the work")

// errUnreachable is the error for features of a server that has a Handler.
var errUnreachable = errors.New("Server.Handler answers all requests, so features of the same server cannot be reached; add them to another Server, which the Handler can call, or leave Handler nil")

// checkAdd returns an error if a feature with or without a function cannot be added.
func (s *Server) checkAdd(noFunc bool) error {
	switch {
	case noFunc:
		return errNoHandler
	case s.Handler != nil:
		return errUnreachable
	}
	return nil
}

// checkToolName checks a name against the rules of the specification. It also allows a slash, as
// SEP-986, the origin of the rules, does, and as existing servers use.
//
// Specification: 2026-07-28, server/tools, Tool Names (TOOL-26-013, -015, -016).
func checkToolName(name string) error {
	switch {
	case name == "":
		return errors.New("the tool has no name; set Tool.Name")
	case len(name) > 128:
		return fmt.Errorf("the name has %d characters; use at most 128", len(name))
	}
	for _, r := range name {
		if r >= 0x80 || !letter(byte(r)) && (r < '0' || r > '9') && !strings.ContainsRune("_-./", r) {
			return fmt.Errorf("the name has the character %q, with which hosts and models cannot call it; use letters, digits, _, - and ., and put other words into Tool.Title", r)
		}
	}
	return nil
}

// check returns the first fault of a tool whose schemas are complete, and the entry without its
// function.
func (t *Tool) check() (*toolEntry, error) {
	e := &toolEntry{def: t}
	if err := checkToolName(t.Name); err != nil {
		return nil, err
	}
	if err := checkObjectSchema(t.InputSchema); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	switch t.Execution.TaskSupport {
	case "", TaskOptional, TaskRequired:
	default:
		return nil, fmt.Errorf("Execution.TaskSupport is %q; use TaskOptional, TaskRequired or nothing", text.Short(string(t.Execution.TaskSupport)))
	}
	if t.Execution.OnDetach && t.Execution.TaskSupport == "" {
		return nil, errors.New("Execution.OnDetach is set, but without Execution.TaskSupport no call becomes a task; set it to TaskOptional or TaskRequired")
	}
	var err error
	e.headers, err = streamable.ParamHeaders(t.InputSchema)
	return e, err
}

// checkObjectSchema checks that a schema has type object. A client with strict types fails to read
// the whole list if one tool's schema does not (TOOL-26-010).
func checkObjectSchema(raw json.RawMessage) error {
	typ, _ := jsonx.Lookup(raw, "type")
	if jsonx.KindOf(raw) != '{' || string(typ) != `"object"` {
		return fmt.Errorf(`%s has no "type": "object", which the arguments of a tool need; add it, and "properties"`, text.Short(string(raw)))
	}
	return nil
}

// checkIn checks that a Go type can hold an object, as arguments are.
func checkIn(t reflect.Type) error {
	cure := fmt.Errorf("arguments are a JSON object, which %s cannot hold; use a struct with a field for each argument", t)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return cure
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return cure
		}
	}
	typ, err := schema.ForType(t)
	if err != nil {
		return nil // no schema, but perhaps JSON
	}
	if kind, ok := jsonx.Lookup(typ.JSON(), "type"); ok && !bytes.Contains(kind, []byte(`"object"`)) {
		return cure
	}
	return nil
}

// checkOut checks that values of a Go type can be results.
func checkOut(t reflect.Type, allowed string) error {
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("a result cannot be the interface %s, which has methods; use %s", t, allowed)
		}
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("a result cannot be %s, which has no JSON form; use %s", t, allowed)
	}
	return nil
}

// checkFields returns the first fault of the fields of a server.
func (s *Server) checkFields() error {
	if revs := tables(s.Revisions); len(revs) == 0 || len(s.Revisions) > 0 && len(revs) != len(s.Revisions) {
		return fmt.Errorf("mcp: Server.Revisions %v: use some of %v, each once, or nil for all", s.Revisions, Revisions())
	}
	guard := s.guard()
	if err := guard.Check(); err != nil {
		return fmt.Errorf("mcp: Server.HTTP: %w", err)
	}
	for _, f := range []struct {
		name  string
		wrong bool
	}{
		{"HTTP.SessionIdle", s.HTTP.SessionIdle < 0}, {"HTTP.MaxSessions", s.HTTP.MaxSessions < 0},
		{"HTTP.Retry", s.HTTP.Retry < 0}, {"State.TTL", s.State.TTL < 0},
		{"Limits.Message", s.Limits.Message < 0}, {"Limits.Depth", s.Limits.Depth < 0}, {"Limits.Concurrent", s.Limits.Concurrent < 0},
		{"Limits.Rounds", s.Limits.Rounds < 0}, {"Limits.PageSize", s.Limits.PageSize < 0},
	} {
		if f.wrong {
			return fmt.Errorf("mcp: Server.%s is negative; use zero for the default, or a bound", f.name)
		}
	}
	features := s.tools.used() || s.prompts.used() || s.resources.used() || s.templates.used()
	s.methods.Range(func(any, any) bool { features = true; return false })
	if s.Handler != nil && features {
		return fmt.Errorf("mcp: %w", errUnreachable)
	}
	return checkExtensions("Server.Extensions", s.Extensions, s.limits.Depth)
}

// checkComplete checks that each name with a completion exists.
func checkComplete(complete map[string]CompleteFunc, what string, names []string) error {
	for _, name := range slices.Sorted(maps.Keys(complete)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("Complete has %q, but there is no such %s; use some of %q", text.Short(name), what, names)
		}
		if complete[name] == nil {
			return fmt.Errorf("Complete of %q: %w", text.Short(name), errNoHandler)
		}
	}
	return nil
}
