package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/schema"
)

type promptEntry struct {
	def *Prompt
	get func(ctx context.Context, args json.RawMessage) (*PromptResult, error)
	encoding
}

func (p *promptEntry) name() string          { return p.def.Name }
func (p *promptEntry) json() json.RawMessage { return p.of(p.def) }

// AddPrompt adds a prompt that is a Go function, or replaces the prompt of that name. In is a
// struct whose fields are the arguments. Arguments travel as strings, so the fields are strings or
// types that decode themselves from text. Null for an optional argument is the same as no argument.
// Out is a string (one message from the user), Content, PromptMessage, []PromptMessage or
// *PromptResult.
//
// AddPrompt panics if the prompt cannot work: In or Out has an unsuitable type, p.Arguments or
// p.Complete names an argument that In does not have, h is nil, s has a Handler or p has no name.
//
// Specification: 2026-07-28, server/prompts.
func AddPrompt[In, Out any](s *Server, p Prompt, h func(context.Context, In) (Out, error)) {
	typ, err := schema.For[In]()
	if err == nil {
		err = p.complete(typ, isStruct(reflect.TypeFor[In]()))
	}
	if err == nil {
		err = checkPromptOut(reflect.TypeFor[Out]())
	}
	if err == nil {
		err = s.checkAdd(h == nil)
	}
	if err != nil {
		panic(fmt.Errorf("mcp: AddPrompt %q: %w", p.Name, err))
	}
	s.prompts.put(&promptEntry{def: &p, get: func(ctx context.Context, args json.RawMessage) (*PromptResult, error) {
		var in In
		if err := typ.Decode(args, &in); err != nil {
			return nil, Errorf(jsonrpc.CodeInvalidParams, "prompt %q: %v", p.Name, err)
		}
		out, err := h(ctx, in)
		if err != nil {
			return nil, err
		}
		return promptResult(out, p.Description)
	}})
	s.feed.changed(KindPrompt)
}

// complete fills in the arguments of a prompt and returns the first fault. If closed is set, typ
// has all the arguments there are.
func (p *Prompt) complete(typ *schema.Type, closed bool) error {
	if p.Name == "" {
		return errors.New("the prompt has no name; set Prompt.Name")
	}
	if !typ.IsObject() {
		return fmt.Errorf("the arguments must be a struct, not %s", typ)
	}
	fields, err := promptArguments(typ)
	if err != nil {
		return err
	}
	if p.Arguments == nil {
		p.Arguments = fields
	}
	given := func(name string) func(PromptArgument) bool {
		return func(a PromptArgument) bool { return a.Name == name }
	}
	names := make([]string, len(p.Arguments))
	for i, a := range p.Arguments {
		names[i] = a.Name
		if closed && !slices.ContainsFunc(fields, given(a.Name)) {
			return fmt.Errorf("argument %q has no field in %s; add one with the tag `json:%q`", text.Short(a.Name), typ, a.Name)
		}
	}
	for _, f := range fields {
		if f.Required && !slices.ContainsFunc(p.Arguments, given(f.Name)) {
			return fmt.Errorf("field %q of %s is required, but Prompt.Arguments does not have it; add it, or the option omitempty to the field", f.Name, typ)
		}
	}
	return checkComplete(p.Complete, "argument", names)
}

// isStruct reports whether a type, or what it points to, is a struct.
func isStruct(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

// checkPromptOut reports whether values of a type become messages.
func checkPromptOut(t reflect.Type) error {
	switch t {
	case reflect.TypeFor[string](), reflect.TypeFor[PromptMessage](), reflect.TypeFor[[]PromptMessage](), reflect.TypeFor[*PromptResult](), reflect.TypeFor[any]():
		return nil
	}
	if isContent(t) {
		return nil
	}
	return fmt.Errorf("a prompt cannot return %s; use string, Content, PromptMessage, []PromptMessage or *PromptResult", t)
}

// promptArguments describes the arguments of a prompt from the schema of its struct.
func promptArguments(typ *schema.Type) ([]PromptArgument, error) {
	form, err := schema.FormOf(typ.JSON())
	if err != nil {
		return nil, err
	}
	out := make([]PromptArgument, len(form.Fields))
	for i, f := range form.Fields {
		if f.Kind != schema.String && f.Kind != schema.Enum {
			return nil, fmt.Errorf("argument %q is not a string, as all arguments of prompts are; use string, or a type with UnmarshalText", f.Name)
		}
		out[i] = PromptArgument{f.Name, f.Title, f.Description, f.Required}
	}
	return out, nil
}

func promptResult(v any, description string) (*PromptResult, error) {
	r := &PromptResult{Description: description}
	switch v := v.(type) {
	case string:
		r.Messages = []PromptMessage{User(v)}
	case PromptMessage:
		r.Messages = []PromptMessage{v}
	case []PromptMessage:
		r.Messages = v
	case *PromptResult:
		return v, nil
	case Content:
		r.Messages = []PromptMessage{{"user", v}}
	default:
		return nil, fmt.Errorf("a prompt cannot return %T; use string, Content, PromptMessage, []PromptMessage or *PromptResult", v)
	}
	return r, nil
}

func (s *Server) listPrompts(ctx context.Context, req *Request) (Result, error) {
	return listPage(ctx, s, &s.prompts, KindPrompt, req, func(e *promptEntry) *Prompt { return e.def })
}

// noPrompt returns the error of a request that names no prompt.
func noPrompt(req *Request) error {
	name, err := req.paramString("name")
	if err != nil {
		return err
	}
	return Errorf(jsonrpc.CodeInvalidParams, "no prompt %q; see prompts/list", text.Short(name))
}

func (s *Server) getPrompt(ctx context.Context, req *Request) (Result, error) {
	p, ok := s.prompts.snapshot().named(req.Param("name"))
	if !ok || !s.visible(ctx, KindPrompt, p.def.Name) {
		return nil, noPrompt(req)
	}
	args, err := rawObject(req, "arguments")
	if err != nil {
		return nil, err
	}
	res, err := p.get(ctx, args)
	if err != nil {
		return nil, err
	}
	if res == nil {
		return nil, fmt.Errorf("prompt %q returned no result", p.def.Name)
	}
	for i, m := range res.Messages {
		if m.Role != "user" && m.Role != "assistant" || m.Content == nil {
			return nil, fmt.Errorf("prompt %q returned messages[%d] without content or with the role %q; use user or assistant", p.def.Name, i, m.Role)
		}
	}
	return res, nil
}

// complete answers completion/complete (2026-07-28, server/utilities/completion).
func (s *Server) complete(ctx context.Context, req *Request) (Result, error) {
	var p struct {
		Ref struct {
			Type string `json:"type"`
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"ref"`
		Argument struct {
			Name  *string `json:"name"`
			Value *string `json:"value"`
		} `json:"argument"`
		Context struct {
			Arguments map[string]string `json:"arguments"`
		} `json:"context"`
	}
	if err := jsonx.Unmarshal(jsonx.OrObject(req.Params), &p); err != nil {
		return nil, Errorf(jsonrpc.CodeInvalidParams, "%s: %v", req.Method, err)
	}
	var complete map[string]CompleteFunc
	switch p.Ref.Type {
	case "ref/prompt":
		e, ok := s.prompts.snapshot().by[p.Ref.Name]
		if !ok || !s.visible(ctx, KindPrompt, p.Ref.Name) {
			return nil, Errorf(jsonrpc.CodeInvalidParams, "no prompt %q to complete", text.Short(p.Ref.Name))
		}
		complete = e.def.Complete
	case "ref/resource":
		if e, ok := s.templates.snapshot().by[p.Ref.URI]; ok && s.visible(ctx, KindResourceTemplate, p.Ref.URI) {
			complete = e.def.Complete
		} else if _, ok := s.resources.snapshot().by[p.Ref.URI]; !ok || !s.visible(ctx, KindResource, p.Ref.URI) {
			return nil, Errorf(jsonrpc.CodeInvalidParams, "no resource or template %q to complete", text.Short(p.Ref.URI))
		}
	default:
		return nil, Errorf(jsonrpc.CodeInvalidParams, "%s: ref.type must be %q or %q", req.Method, "ref/prompt", "ref/resource")
	}
	if p.Argument.Name == nil || p.Argument.Value == nil {
		return nil, Errorf(jsonrpc.CodeInvalidParams, "%s: missing argument.name or argument.value", req.Method)
	}
	f := complete[*p.Argument.Name]
	if f == nil {
		return &CompleteResult{}, nil
	}
	values, err := f(ctx, *p.Argument.Value, p.Context.Arguments)
	if err != nil {
		return nil, err
	}
	// At most 100 values are sent (COMP-26).
	const most = 100
	res := &CompleteResult{Values: values}
	if len(values) > most {
		res.Values, res.Total, res.HasMore = values[:most], len(values), true
	}
	return res, nil
}
