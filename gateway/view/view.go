package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
	"github.com/patchbay-dev/patchbay/policy"
)

// View is a part of a handler. The fields must not change after Middleware.
type View struct {
	// Name is in logs, and in the lines of an audit log as the rule of a refusal: view "NAME".
	Name string

	// Tools, Prompts and Resources are the names, and the URIs or URI templates, of what the view
	// has. In each "*" stands for any text. A nil list has nothing, like an empty one, unless all three
	// are nil: then the view has everything.
	Tools, Prompts, Resources []string

	// For reports whether the caller of ctx may use the view. Nil: everybody may.
	For func(ctx context.Context) bool

	// Changes are other forms of tools, by their names in the handler behind the view, see
	// [middleware.Tools]. Tools has those names too.
	Changes map[string]middleware.ToolChange

	// PromptChanges and ResourceChanges are other forms of prompts, resources and resource templates,
	// likewise, see [middleware.Prompts] and [middleware.Resources].
	PromptChanges   map[string]middleware.PromptChange
	ResourceChanges map[string]middleware.ResourceChange

	// Instructions are those of the view, instead of those of the handler, which may be about what the
	// view does not have. With everything in the view, empty means those of the handler.
	Instructions string

	// Search, if not nil, offers tools that find and call those of the view, instead of these.
	Search *Search

	// Memory is that of the view that this one takes the place of. Nil: it starts with nothing.
	Memory *Memory

	// Logger gets refusals, at Info. Nil means none.
	Logger *slog.Logger
}

// Check returns an error that says what is wrong with the fields, such as two tools that Changes give
// one name, or a tool that gets the name of another one in Tools.
func (v *View) Check() (err error) {
	defer func() {
		if p := recover(); p != nil { // of middleware.Tools
			fault, ok := p.(error)
			if err = errors.Unwrap(fault); !ok || err == nil {
				panic(p)
			}
		}
	}()
	if v.Name == "" {
		return errors.New("a view needs a name")
	}
	if v.Search != nil && v.Search.Budget < 0 {
		return fmt.Errorf("a budget of %d bytes; give a positive number", v.Search.Budget)
	}
	v.forms()
	for _, from := range slices.Sorted(maps.Keys(v.Changes)) {
		name := v.Changes[from].Name
		if v.Search != nil && (name == findTools || name == describeTool || name == callTool) {
			return fmt.Errorf("the tool %q cannot be named %q: the search has a tool of that name; use another name", from, name)
		}
		if _, changed := v.Changes[name]; name != from && !changed && slices.Contains(v.Tools, name) {
			return taken("tool", from, name)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(v.PromptChanges)) {
		name := v.PromptChanges[from].Name
		if _, changed := v.PromptChanges[name]; name != from && !changed && slices.Contains(v.Prompts, name) {
			return taken("prompt", from, name)
		}
	}
	return nil
}

// taken is the fault of a feature that gets the name of another one in the view.
func taken(kind, from, name string) error {
	return fmt.Errorf("the %[1]s %[2]q cannot be named %[3]q: the view has a %[1]s of that name; rename or hide that one too, or use another name", kind, from, name)
}

// forms returns the middlewares of the changes. It panics with an error that wraps what is wrong with them.
func (v *View) forms() (forms []mcp.Middleware) {
	if v.Changes != nil {
		forms = append(forms, middleware.Tools(v.Changes))
	}
	if v.PromptChanges != nil {
		forms = append(forms, middleware.Prompts(v.PromptChanges))
	}
	if v.ResourceChanges != nil {
		forms = append(forms, middleware.Resources(v.ResourceChanges))
	}
	return forms
}

// Middleware returns the middleware that makes the view of a handler. It panics if Check
// returns an error.
func (v *View) Middleware() mcp.Middleware {
	if err := v.Check(); err != nil {
		panic(fmt.Errorf("view %q: %w", v.Name, err))
	}
	memory := cmp.Or(v.Memory, new(Memory))
	steps := []mcp.Middleware{v.limit}
	if v.Search != nil {
		steps = append(steps, v.Search.middleware(v, &memory.rests))
	}
	forms, gate := v.forms(), memory.gateOf(v)
	if !v.everything() {
		forms = append(forms, gate)
	}
	if forms != nil {
		steps = append(steps, new(memo).middleware(joined(forms)))
	}
	if v.everything() {
		steps = append(steps, func(next mcp.Handler) mcp.Handler { return &whole{gate(next), next} })
	}
	return joined(steps)
}

// joined makes one middleware of several, the outermost first.
func joined(steps []mcp.Middleware) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		for _, step := range slices.Backward(steps) {
			next = step(next)
		}
		return next
	}
}

func (v *View) everything() bool { return v.Tools == nil && v.Prompts == nil && v.Resources == nil }

// limit refuses callers who may not use the view, and answers server/discover.
func (v *View) limit(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if err := v.Admit(ctx); err != nil {
			return nil, err
		}
		res, err := next.Handle(ctx, req)
		if err != nil || req.Method != "server/discover" || v.everything() && v.Instructions == "" && v.Search == nil {
			return res, err
		}
		raw := jsonx.Without(nil, res.JSON(), "instructions")
		instructions := v.Instructions
		if v.Search != nil && instructions == "" {
			instructions = searchInstructions
		}
		if instructions != "" {
			raw = jsonx.With(nil, raw, "instructions", jsonx.AppendString(nil, instructions))
		}
		return mcp.RawResult(raw), nil
	})
}

// decide is the policy of the view. It does not depend on the caller, as memo needs it.
func (v *View) decide(_ context.Context, a *policy.Access) policy.Decision {
	if a.Kind == mcp.KindTool && v.Changes[a.Name].Hidden && a.Method != feature.Tools.Use { // a task that began before
		return policy.Decision{Rule: v.rule()}
	}
	if v.everything() {
		return policy.Decision{Allow: true, Rule: v.rule()}
	}
	var patterns []string
	switch a.Kind {
	case mcp.KindTool:
		patterns = v.Tools
	case mcp.KindPrompt:
		patterns = v.Prompts
	case mcp.KindResource:
		patterns = v.Resources
	}
	name := a.Name
	if name == "" {
		name = a.Template // without both it is a task of an unknown tool, which may be outside of the view
	}
	allow := name != "" && slices.ContainsFunc(patterns, func(pattern string) bool { return wildcard.Match(pattern, name) })
	return policy.Decision{Allow: allow, Rule: v.rule()}
}
