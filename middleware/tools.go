package middleware

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// ToolChange says how callers see a tool. The zero value changes nothing.
type ToolChange struct {
	Hidden                   bool           // the tool is not listed, and unknown to callers
	Name, Title, Description string         // empty: as they are
	Arguments                map[string]any // values that callers cannot set: the input schema does not have them, and each call gets them. Not for secrets: errors of the tool may quote them
}

// Tools returns a middleware that changes the tools of the next Handler, by their names there: for a
// server whose Handler is a session or a gateway, and for Client.Use. Everything else passes
// unchanged, such as questions, progress and tasks. The former name of a renamed tool is unknown to
// callers, and a tool of the next Handler that has the new name is hidden, so that a server cannot take
// over the calls of another tool by its list. Tools panics if two tools get the same name, if a name is
// not one that [mcp.AddTool] accepts, or if a value of Arguments has no JSON form. A tool that is hidden
// so, and a change of a tool or argument that the first whole list does not have, are reported to
// [slog.Default] at Warn.
func Tools(changes map[string]ToolChange) mcp.Middleware {
	t := &tools{newForms(feature.Tools, "Tools", "tool"), map[string][]argument{}}
	each(t.forms, changes, t.add)
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case t.Method:
				return t.change(ctx, req, next)
			case t.Use:
				return t.call(ctx, req, next)
			}
			return next.Handle(ctx, req)
		})
	}
}

// tools are tools that callers see in another form.
type tools struct {
	*forms
	fixed map[string][]argument // by name in the next Handler
}

type argument struct {
	name  string
	value json.RawMessage
}

func (t *tools) add(from string, c ToolChange) error {
	one, err := t.forms.add(from, c.Name, c.Title, c.Description, c.Hidden)
	if err != nil || len(c.Arguments) == 0 {
		return err
	}
	names := slices.Sorted(maps.Keys(c.Arguments))
	for _, name := range names {
		raw, err := jsonx.Marshal(c.Arguments[name])
		if err != nil {
			return fmt.Errorf("the tool %q: argument %q: %w", from, name, err)
		}
		t.fixed[from] = append(t.fixed[from], argument{name, raw})
	}
	one.define = func(def json.RawMessage) json.RawMessage {
		input, _ := jsonx.Lookup(def, "inputSchema")
		return jsonx.With(nil, def, "inputSchema", without(input, names))
	}
	one.lacks = func(def json.RawMessage, say func(string, ...any)) {
		input, _ := jsonx.Lookup(def, "inputSchema")
		if more, _ := jsonx.Lookup(input, "additionalProperties"); string(more) != "false" {
			return
		}
		properties, _ := jsonx.Lookup(input, "properties")
		for _, name := range names {
			if _, ok := jsonx.Lookup(properties, name); !ok {
				say("the tool does not have an argument that is set, so its calls fail; correct ToolChange.Arguments", "argument", name)
			}
		}
	}
	return nil
}

// without returns a schema of objects that does not have some properties and does not require them,
// also in its parts for the same object.
func without(input json.RawMessage, names []string) json.RawMessage {
	if jsonx.KindOf(input) != '{' {
		return input
	}
	if properties, ok := jsonx.Lookup(input, "properties"); ok {
		input = jsonx.With(nil, input, "properties", jsonx.Without(nil, properties, names...))
	}
	for _, member := range []string{"allOf", "anyOf", "oneOf"} {
		if parts, ok := jsonx.Lookup(input, member); ok && jsonx.KindOf(parts) == '[' {
			out := []byte{'['}
			for e := range jsonx.Elements(parts) {
				if len(out) > 1 {
					out = append(out, ',')
				}
				out = append(out, without(e, names)...)
			}
			input = jsonx.With(nil, input, member, append(out, ']'))
		}
	}
	for _, member := range []string{"if", "then", "else"} {
		if part, ok := jsonx.Lookup(input, member); ok {
			input = jsonx.With(nil, input, member, without(part, names))
		}
	}
	if required, ok := jsonx.Lookup(input, "required"); ok {
		rest := []string{}
		for e := range jsonx.Elements(required) {
			if name := stringOf(e); !slices.Contains(names, name) {
				rest = append(rest, name)
			}
		}
		raw, _ := jsonx.Marshal(rest)
		if input = jsonx.With(nil, input, "required", raw); len(rest) == 0 {
			input = jsonx.Without(nil, input, "required")
		}
	}
	return input
}

// call changes a call.
func (t *tools) call(ctx context.Context, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	name := nameOf(req)
	from, one, err := t.inner(name)
	if err != nil {
		return nil, err
	}
	if one == nil {
		return next.Handle(ctx, req)
	}
	params := json.RawMessage(req.Params)
	if from != name {
		params = jsonx.With(nil, params, "name", jsonx.AppendString(nil, from))
	}
	if fixed := t.fixed[from]; len(fixed) > 0 {
		args, _ := jsonx.Lookup(params, "arguments")
		if k := jsonx.KindOf(args); args != nil && k != '{' && k != 'n' {
			res, err := next.Handle(ctx, &mcp.Request{Method: req.Method, Params: params}) // which refuses it
			return res, told(err, from, name)
		}
		for _, a := range fixed {
			if _, given := jsonx.Lookup(args, a.name); given {
				return &mcp.ToolResult{IsError: true, Content: []mcp.Content{mcp.Text(fmt.Sprintf("unknown property %q", a.name))}}, nil
			}
			args = jsonx.With(nil, args, a.name, a.value)
		}
		params = jsonx.With(nil, params, "arguments", args)
	}
	res, err := next.Handle(ctx, &mcp.Request{Method: req.Method, Params: params})
	return res, told(err, from, name)
}
