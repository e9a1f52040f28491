package middleware

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// PromptChange says how callers see a prompt. The zero value changes nothing.
type PromptChange struct {
	Hidden                   bool              // the prompt is not listed, and unknown to callers
	Name, Title, Description string            // empty: as they are
	Arguments                map[string]string // descriptions of arguments, by their names
}

// Prompts returns a middleware that changes the prompts of the next Handler, by their names there, as
// [Tools] does with tools. Completions of their arguments have the new names too. Prompts panics if two
// prompts get the same name, or if a name is not one that [mcp.AddTool] accepts.
func Prompts(changes map[string]PromptChange) mcp.Middleware {
	f := newForms(feature.Prompts, "Prompts", "prompt")
	each(f, changes, func(from string, c PromptChange) error {
		one, err := f.add(from, c.Name, c.Title, c.Description, c.Hidden)
		if err != nil || len(c.Arguments) == 0 {
			return err
		}
		one.define = func(def json.RawMessage) json.RawMessage { return described(def, c.Arguments) }
		one.lacks = func(def json.RawMessage, say func(string, ...any)) {
			has := map[string]bool{}
			list, _ := jsonx.Lookup(def, "arguments")
			for a := range jsonx.Elements(list) {
				has[f.nameOf(a)] = true
			}
			for _, name := range slices.Sorted(maps.Keys(c.Arguments)) {
				if !has[name] {
					say("the prompt does not have an argument that is described; correct PromptChange.Arguments", "argument", name)
				}
			}
		}
		return nil
	})
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case f.Method:
				return f.change(ctx, req, next)
			case f.Use:
				return f.named(ctx, req, req.Params, next, func(params json.RawMessage) json.RawMessage { return params })
			case "completion/complete":
				ref := req.Param("ref")
				if kind, _ := jsonx.Lookup(ref, "type"); stringOf(kind) != "ref/prompt" {
					break
				}
				return f.named(ctx, req, ref, next, func(ref json.RawMessage) json.RawMessage { return jsonx.With(nil, req.Params, "ref", ref) })
			}
			return next.Handle(ctx, req)
		})
	}
}

// described returns the definition of a prompt with descriptions of its arguments.
func described(def json.RawMessage, texts map[string]string) json.RawMessage {
	list, ok := jsonx.Lookup(def, "arguments")
	if !ok {
		return def
	}
	out := []byte{'['}
	for a := range jsonx.Elements(list) {
		name, _ := jsonx.Lookup(a, "name")
		if text := texts[stringOf(name)]; text != "" {
			a = jsonx.With(nil, a, "description", jsonx.AppendString(nil, text))
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, a...)
	}
	return jsonx.With(nil, def, "arguments", append(out, ']'))
}

// named passes on a request about the feature whose name is in obj. The function whole returns the params
// with another obj.
func (f *forms) named(ctx context.Context, req *mcp.Request, obj json.RawMessage, next mcp.Handler, whole func(json.RawMessage) json.RawMessage) (mcp.Result, error) {
	quoted, _ := jsonx.Lookup(obj, "name")
	name := stringOf(quoted)
	from, one, err := f.inner(name)
	switch {
	case err != nil:
		return nil, err
	case one == nil || from == name:
		return next.Handle(ctx, req)
	}
	params := whole(jsonx.With(nil, obj, "name", jsonx.AppendString(nil, from)))
	res, err := next.Handle(ctx, &mcp.Request{Method: req.Method, Params: params})
	return res, told(err, from, name)
}
