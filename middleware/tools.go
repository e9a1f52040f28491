package middleware

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
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
// callers, and a tool of the next Handler that has the new name is hidden. Tools panics if two tools
// get the same name, if a name is not one that [mcp.AddTool] accepts, or if a value of Arguments has
// no JSON form. A change of a tool or argument that the first whole list does not have is reported to
// [slog.Default] at Warn, because it may be misspelled.
func Tools(changes map[string]ToolChange) mcp.Middleware {
	t := &tools{by: map[string]*changedTool{}, from: map[string]string{}, listed: map[string]bool{}}
	for from, c := range changes {
		one := &changedTool{ToolChange: c}
		for name, v := range c.Arguments {
			raw, err := jsonx.Marshal(v)
			if err != nil {
				panic(fmt.Errorf("middleware: Tools: %q: argument %q: %w", from, name, err))
			}
			one.fixed = append(one.fixed, argument{name, raw})
		}
		slices.SortFunc(one.fixed, func(a, b argument) int { return strings.Compare(a.name, b.name) })
		if one.Name == "" {
			one.Name = from
		} else if err := new(mcp.Server).HandleTool(mcp.Tool{Name: one.Name}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return nil, nil }); err != nil {
			panic(fmt.Errorf("middleware: Tools: %q: %w", from, err))
		}
		t.by[from] = one
		if c.Hidden {
			continue
		}
		if other, taken := t.from[one.Name]; taken {
			panic(fmt.Errorf("middleware: Tools: %q and %q are both named %q", min(from, other), max(from, other), one.Name))
		}
		t.from[one.Name] = from
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case revision.MethodTools:
				return t.list(ctx, req, next)
			case revision.MethodCall:
				return t.call(ctx, req, next)
			}
			return next.Handle(ctx, req)
		})
	}
}

type tools struct {
	by   map[string]*changedTool // by name in the next Handler
	from map[string]string       // that name, by the name that callers see

	mu     sync.Mutex
	listed map[string]bool // the names in by that a list has had; nil: the whole list was seen. Guarded by mu
}

// changedTool is a tool that callers see in another form.
type changedTool struct {
	ToolChange
	fixed []argument
}

type argument struct {
	name  string
	value json.RawMessage
}

// list changes a list of tools.
func (t *tools) list(ctx context.Context, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	res, err := next.Handle(ctx, req)
	if err != nil {
		return nil, err
	}
	raw := res.JSON()
	list, _ := jsonx.Lookup(raw, "tools")
	cursor, _ := jsonx.Lookup(raw, "nextCursor")
	t.census(ctx, list, len(cursor) == 0 || string(cursor) == "null")
	out := []byte{'['}
	for e := range jsonx.Elements(list) {
		member, _ := jsonx.Lookup(e, "name")
		name := stringOf(member)
		c := t.by[name]
		_, taken := t.from[name]
		switch {
		case c == nil && taken, c != nil && c.Hidden:
			continue
		case c != nil:
			e = c.definition(e)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return mcp.RawResult(jsonx.With(nil, raw, "tools", append(out, ']'))), nil
}

// census notes the tools in a page of a list and, once, after the last page, warns of changes that
// change nothing.
func (t *tools) census(ctx context.Context, list json.RawMessage, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listed == nil || step.IsQuiet(ctx) {
		return
	}
	for e := range jsonx.Elements(list) {
		member, _ := jsonx.Lookup(e, "name")
		name := stringOf(member)
		c := t.by[name]
		if c == nil || t.listed[name] {
			continue
		}
		t.listed[name] = true
		input, _ := jsonx.Lookup(e, "inputSchema")
		properties, _ := jsonx.Lookup(input, "properties")
		for _, a := range c.fixed {
			if more, _ := jsonx.Lookup(input, "additionalProperties"); string(more) != "false" {
				break
			}
			if _, ok := jsonx.Lookup(properties, a.name); !ok {
				slog.WarnContext(ctx, "middleware.Tools: the tool does not have an argument that is set, so its calls fail; correct ToolChange.Arguments", "tool", name, "argument", a.name)
			}
		}
	}
	if !last {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(t.by)) {
		if !t.listed[name] {
			slog.WarnContext(ctx, "middleware.Tools: no tool of the list has the name of a change; correct the name", "tool", name)
		}
	}
	t.listed = nil
}

// definition returns the definition of the tool as callers see it.
func (c *changedTool) definition(def json.RawMessage) json.RawMessage {
	for _, m := range []struct{ name, value string }{{"name", c.Name}, {"title", c.Title}, {"description", c.Description}} {
		if m.value != "" {
			def = jsonx.With(nil, def, m.name, jsonx.AppendString(nil, m.value))
		}
	}
	if len(c.fixed) == 0 {
		return def
	}
	var names []string
	for _, a := range c.fixed {
		names = append(names, a.name)
	}
	input, _ := jsonx.Lookup(def, "inputSchema")
	return jsonx.With(nil, def, "inputSchema", without(input, names))
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
	from, shown := t.from[name]
	if !shown {
		if t.by[name] != nil { // hidden, or renamed
			return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "no tool %q; see tools/list", text.Short(name))
		}
		return next.Handle(ctx, req)
	}
	c := t.by[from]
	params := json.RawMessage(req.Params)
	if from != name {
		params = jsonx.With(nil, params, "name", jsonx.AppendString(nil, from))
	}
	if len(c.fixed) > 0 {
		args, _ := jsonx.Lookup(params, "arguments")
		if k := jsonx.KindOf(args); args != nil && k != '{' && k != 'n' {
			return next.Handle(ctx, req) // which refuses it
		}
		for _, a := range c.fixed {
			if _, given := jsonx.Lookup(args, a.name); given {
				return &mcp.ToolResult{IsError: true, Content: []mcp.Content{mcp.Text(fmt.Sprintf("unknown property %q", a.name))}}, nil
			}
			args = jsonx.With(nil, args, a.name, a.value)
		}
		params = jsonx.With(nil, params, "arguments", args)
	}
	res, err := next.Handle(ctx, &mcp.Request{Method: req.Method, Params: params})
	if rpc, ok := err.(*mcp.Error); ok && from != name && rpc.Code == jsonrpc.CodeInvalidParams { // no such tool, perhaps
		own := *rpc
		own.Message = strings.ReplaceAll(own.Message, strconv.Quote(from), strconv.Quote(name))
		return nil, &own
	}
	return res, err
}
