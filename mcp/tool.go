package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/definition"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/schema"
)

type toolEntry struct {
	def     *Tool
	headers []streamable.ParamHeader
	output  *schema.Validator // nil: there is no output schema, or call obeys it by itself
	call    func(ctx context.Context, args json.RawMessage) (*ToolResult, error)
	encoding
	digest definition.Digests // of def, for an audit log
}

func (t *toolEntry) name() string          { return t.def.Name }
func (t *toolEntry) json() json.RawMessage { return t.of(t.def) }

// AddTool adds a tool that is a Go function, or replaces the tool of that name.
//
// In is a struct; its fields and tags (package schema) make the input schema, and arguments are
// checked and decoded in one pass. Arguments that do not fit are answered with a tool error that
// names every fault. In may be struct{} for no arguments. Null for an optional argument is the same
// as no argument, because models send it for arguments they leave out. [Tool].Input changes
// tags at run time. A t.InputSchema that is not nil replaces these rules: arguments are then exact
// JSON, and the schema accepts or refuses null.
//
// Out decides the result: a string becomes text; Content, or a list of one of its types, becomes
// content; *ToolResult is the result; a type with the methods OutputSchema and ToolResult, such as
// structured.Result, says both itself; a value of any other type becomes structured content, with
// its schema ([schema.ForOutput]), and its JSON as text. A number, a boolean, a list and any other
// value that is not an object is the member "result" of the structured content, which revisions
// before 2026-07-28 want to be an object. So is such a value of an Out that may be anything, such as
// any or [json.RawMessage]. A value that t.OutputSchema describes, or a JSONSchema method of Out
// without a "type", is sent as it is, and to those revisions as text alone.
//
// If t.OutputSchema or the schema of Out requires structured content, and a result has none or one
// that does not fit, that is a fault of the server that a model cannot correct: an [*Error] with
// [jsonrpc.CodeInternal].
//
// An error of h becomes a tool error with its text, for the model to act on; an
// [*Error] a JSON-RPC error; a panic an internal error without detail.
//
// AddTool panics if the tool cannot work: In cannot hold an object, Out is an interface with
// methods, one of them has no schema, h is nil, s has a Handler, or the name has characters other
// than letters, digits, _, -, . and /, or more than 128. These are mistakes of the program that no input can
// cause; [Server.HandleTool], whose tools may come from input, returns an error instead.
//
// Specification: 2026-07-28, server/tools, Output Schema and Error Handling.
func AddTool[In, Out any](s *Server, t Tool, h func(context.Context, In) (Out, error)) {
	decode, result, e, err := newTool[In, Out](&t)
	if err == nil {
		err = s.checkAdd(h == nil)
	}
	if err != nil {
		panic(fmt.Errorf("mcp: AddTool %q: %w", t.Name, err))
	}
	e.call = func(ctx context.Context, args json.RawMessage) (*ToolResult, error) {
		var v In
		if err := decode(args, &v, decoded(ctx, args), s.Lenient); err != nil {
			return nil, err
		}
		res, err := h(ctx, v)
		if err != nil {
			return nil, err
		}
		return result(res)
	}
	s.tools.put(e)
	s.feed.changed(KindTool)
}

// newTool completes the schemas of t from its types, and returns the first fault.
func newTool[In, Out any](t *Tool) (decode decodeFunc[In], result func(Out) (*ToolResult, error), e *toolEntry, err error) {
	if decode, t.InputSchema, err = decoderOf[In](t.Input, t.InputSchema); err != nil {
		return nil, nil, nil, err
	}
	out, plain := reflect.TypeFor[Out](), isPlainOut[Out]()
	if err = checkOut(out, "any, or a type of its own"); err != nil && !plain {
		return nil, nil, nil, err
	}
	if own, ok := any(*new(Out)).(ownResult); ok {
		if out.Kind() == reflect.Pointer {
			return nil, nil, nil, fmt.Errorf("a result cannot be %s; use %s", out, out.Elem())
		}
		if t.OutputSchema == nil {
			if t.OutputSchema, err = own.OutputSchema(); err != nil {
				return nil, nil, nil, fmt.Errorf("result: %w", err)
			}
		}
	} else if t.OutputSchema != nil && plain && out != reflect.TypeFor[*ToolResult]() && out != reflect.TypeFor[any]() {
		return nil, nil, nil, fmt.Errorf("a result of type %s is never structured, but OutputSchema says that it is; use a struct, or leave OutputSchema out", out)
	}
	if result, t.OutputSchema, err = resultOf[Out](t.OutputSchema); err != nil {
		return nil, nil, nil, err
	}
	if e, err = t.check(); err == nil && plain {
		err = e.hold()
	}
	return decode, result, e, err
}

// HandleTool adds an untyped tool, for tools known only at run time, or replaces the tool of that
// name. Args is an object that was checked against t.InputSchema, which may be nil for any object,
// and is as the caller sent it: a schema that accepts null for an optional argument says
// "type": ["string", "null"]. The function h must not keep or change args. Its errors are treated as
// those of [AddTool], and so is structured content if t.OutputSchema is not nil.
//
// If the tool cannot work, HandleTool returns an error with the reason. It does not panic as AddTool
// does, because its name and schemas may come from outside the program, such as a file or a database.
func (s *Server) HandleTool(t Tool, h func(ctx context.Context, args json.RawMessage) (*ToolResult, error)) error {
	if t.Input != nil {
		return fmt.Errorf("mcp: HandleTool %q: Input is for AddTool; set InputSchema to its JSON", t.Name)
	}
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	check, err := schema.Compile(t.InputSchema)
	if err != nil {
		return fmt.Errorf("mcp: HandleTool %q: input schema: %w", t.Name, err)
	}
	return s.handleTool(t, h == nil, func(ctx context.Context, args json.RawMessage) (*ToolResult, error) {
		if err := check.Validate(args); err != nil {
			return nil, err
		}
		return h(ctx, args)
	})
}

func init() {
	engine.HandleTool = func(server, tool any, h func(context.Context, json.RawMessage) (any, error)) error {
		t := tool.(Tool)
		check := sync.OnceValues(func() (*schema.Validator, error) { return schema.Compile(t.InputSchema) })
		return server.(*Server).handleTool(t, false, func(ctx context.Context, args json.RawMessage) (*ToolResult, error) {
			v, err := check()
			if err != nil {
				return nil, fmt.Errorf("the input schema of the tool cannot be used: %w", err)
			}
			if err := v.Validate(args); err != nil {
				return nil, err
			}
			res, err := h(ctx, args)
			if err != nil {
				return nil, err
			}
			return res.(*ToolResult), nil
		})
	}
}

// handleTool adds a tool whose function checks its arguments.
func (s *Server) handleTool(t Tool, noFunc bool, call func(context.Context, json.RawMessage) (*ToolResult, error)) error {
	e, err := t.check()
	if err == nil {
		err = s.checkAdd(noFunc)
	}
	if err == nil {
		err = e.hold()
	}
	if err != nil {
		return fmt.Errorf("mcp: HandleTool %q: %w", t.Name, err)
	}
	e.call = call
	s.tools.put(e)
	s.feed.changed(KindTool)
	return nil
}

// decodeFunc reads arguments. If valid is set, they are known to be valid JSON.
type decodeFunc[In any] func(args json.RawMessage, v *In, valid, lenient bool) error

// decoderOf returns the decoder of arguments into an In, and their schema.
func decoderOf[In any](typ *schema.Type, given json.RawMessage) (decodeFunc[In], json.RawMessage, error) {
	in := reflect.TypeFor[In]()
	if err := checkIn(in); err != nil {
		return nil, nil, err
	}
	switch {
	case typ != nil && given != nil:
		return nil, nil, errors.New("both Input and InputSchema are set; set one")
	case typ != nil && typ.GoType() != in:
		return nil, nil, fmt.Errorf("the type of Input is %s, but the function takes %s; make it with schema.For[%[2]s]", typ, in)
	}
	if given == nil {
		var err error
		if typ == nil {
			if typ, err = schema.For[In](); err != nil {
				return nil, nil, err
			}
		}
		if typ.IsObject() {
			return func(args json.RawMessage, v *In, valid, lenient bool) error {
				switch {
				case lenient:
					return typ.DecodeLenient(args, v)
				case valid:
					return typ.DecodeValid(args, v)
				}
				return typ.Decode(args, v)
			}, typ.JSON(), nil
		}
		// json.RawMessage, map[string]any and the like: any object.
		given = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	check, err := schema.Compile(given)
	if err != nil {
		return nil, nil, fmt.Errorf("input schema: %w", err)
	}
	return func(args json.RawMessage, v *In, _, _ bool) error {
		if err := check.Validate(args); err != nil {
			return err
		}
		return jsonx.Unmarshal(args, v)
	}, given, nil
}

// decoded reports whether arguments are the bytes received in the request of ctx, which are known
// to be valid JSON.
func decoded(ctx context.Context, args json.RawMessage) bool {
	call := engine.From(ctx)
	if call == nil {
		return false
	}
	raw, ok := call.Msg.Param("arguments")
	return ok && len(raw) == len(args) && &raw[0] == &args[0]
}

// resultOf returns the encoder of an Out as a tool result, and its schema if it is structured. A
// result that does not fit the schema is an error (TOOL-26-023).
func resultOf[Out any](given json.RawMessage) (func(Out) (*ToolResult, error), json.RawMessage, error) {
	if isPlainOut[Out]() {
		return func(v Out) (*ToolResult, error) {
			if text, ok := any(v).(string); ok { // without the allocation of anyResult
				return oneBlock(TextContent{Text: text}), nil
			}
			return anyResult(v, given != nil)
		}, given, nil
	}
	if given == nil {
		out, err := schema.ForOutput[Out]()
		if err != nil {
			return nil, nil, fmt.Errorf("result: %w", err)
		}
		typ, typed := jsonx.Lookup(out.JSON(), "type")
		switch {
		case string(out.JSON()) == `{}`:
			return func(v Out) (*ToolResult, error) { return structuredAny(out.Encode(v)) }, out.JSON(), nil
		case typed && string(typ) != `"object"`:
			if out, err = schema.ForOutput[scalar[Out]](); err != nil {
				return nil, nil, fmt.Errorf("result: %w", err)
			}
			return func(v Out) (*ToolResult, error) { return structuredScalar(out.Encode(scalar[Out]{v})) }, out.JSON(), nil
		}
		return func(v Out) (*ToolResult, error) { return structured(out.Encode(v)) }, out.JSON(), nil
	}
	check, err := schema.Compile(given)
	if err != nil {
		return nil, nil, fmt.Errorf("output schema: %w", err)
	}
	return func(v Out) (*ToolResult, error) {
		raw, err := jsonx.Marshal(v)
		if err == nil {
			err = check.Validate(raw)
		}
		return structured(raw, err)
	}, given, nil
}

// ownResult is a result type that makes its schema and its results, such as structured.Result.
type ownResult interface {
	OutputSchema() (json.RawMessage, error)
	ToolResult() (*ToolResult, error)
}

// isPlainOut reports whether the values of an Out, not its type, determine the form of results.
func isPlainOut[Out any]() bool {
	t := reflect.TypeFor[Out]()
	return t.Implements(reflect.TypeFor[ownResult]()) || t == reflect.TypeFor[string]() || t == reflect.TypeFor[*ToolResult]() || t == reflect.TypeFor[any]() || isContent(t) || isContents(t)
}

func isContent(t reflect.Type) bool { return t.Implements(reflect.TypeFor[Content]()) }

// isContents reports whether a type is a list of content blocks. [RawContent] is a block.
func isContents(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && isContent(t.Elem())
}

// anyResult returns the result for v according to its dynamic type, which must not be string: the
// caller converts strings itself. If described is set, an output schema describes structured values.
func anyResult(v any, described bool) (*ToolResult, error) {
	switch v := v.(type) {
	case ownResult:
		if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.IsNil() {
			return nil, errors.New("the tool returned no result")
		}
		res, err := v.ToolResult()
		if err != nil {
			return nil, badResult(err)
		}
		return res, nil
	case *ToolResult:
		if v == nil {
			return nil, errors.New("the tool returned no result")
		}
		return v, nil
	case []Content:
		return &ToolResult{Content: v}, nil
	case Content:
		return oneBlock(v), nil
	case nil:
		return &ToolResult{}, nil
	}
	if list := reflect.ValueOf(v); isContents(list.Type()) {
		res := &ToolResult{Content: make([]Content, list.Len())}
		for i := range res.Content {
			res.Content[i] = list.Index(i).Interface().(Content)
		}
		return res, nil
	}
	if described {
		return structured(jsonx.Marshal(v))
	}
	return structuredAny(jsonx.Marshal(v))
}

// oneBlock is a result of one block, in one allocation.
func oneBlock(c Content) *ToolResult {
	r := &struct {
		ToolResult
		block [1]Content
	}{block: [1]Content{c}}
	r.Content = r.block[:]
	return &r.ToolResult
}

func structured(raw json.RawMessage, err error) (*ToolResult, error) {
	if err != nil {
		return nil, badResult(err)
	}
	return &ToolResult{Content: []Content{TextContent{Text: string(raw)}}, Structured: raw, own: &raw[0]}, nil
}

// scalar is the structured content for a value that is not an object.
type scalar[T any] struct {
	Result T `json:"result"`
}

// structuredScalar is structured for an encoded scalar. Its text is that of the value alone.
func structuredScalar(raw json.RawMessage, err error) (*ToolResult, error) {
	res, err := structured(raw, err)
	if err == nil {
		value, _ := jsonx.Lookup(raw, "result")
		res.Content[0] = TextContent{Text: string(value)}
	}
	return res, err
}

// structuredAny is structured for an encoded value of any kind, which no schema describes.
func structuredAny(raw json.RawMessage, err error) (*ToolResult, error) {
	if err != nil || jsonx.KindOf(raw) == '{' {
		return structured(raw, err)
	}
	return structuredScalar(append(append(json.RawMessage(`{"result":`), raw...), '}'), nil)
}

// badResult is the error for a result that breaks the tool's own schema.
func badResult(err error) error {
	return Errorf(jsonrpc.CodeInternal, "the result does not fit the output schema of the tool: %v", err)
}

// hold makes the entry check results against the tool's own output schema.
func (t *toolEntry) hold() (err error) {
	if t.def.OutputSchema == nil {
		return nil
	}
	if t.output, err = schema.Compile(t.def.OutputSchema); err != nil {
		return fmt.Errorf("output schema: %w", err)
	}
	return nil
}

// held returns an error for a result that breaks the output schema (TOOL-26-023).
func (t *toolEntry) held(res *ToolResult) error {
	switch {
	case t.output == nil || res == nil || res.IsError:
		return nil
	case res.Structured == nil:
		return badResult(errors.New("it has no structured content; set ToolResult.Structured"))
	}
	if err := t.output.Validate(res.Structured); err != nil {
		return badResult(err)
	}
	return nil
}

func (s *Server) listTools(ctx context.Context, req *Request) (Result, error) {
	return listPage(ctx, s, &s.tools, KindTool, req, func(e *toolEntry) *Tool { return e.def })
}

// HasTool reports whether a tool is registered, whoever may see it (see [Server.Visible]). With a
// Handler a server has none.
func (s *Server) HasTool(name string) bool {
	return s.tools.has(name)
}

// noTool returns the error of a request that names no tool.
func noTool(req *Request) error {
	name, err := req.paramString("name")
	if err != nil {
		return err
	}
	return Errorf(jsonrpc.CodeInvalidParams, "no tool %q; see tools/list", text.Short(name))
}

func (s *Server) callTool(ctx context.Context, req *Request) (Result, error) {
	t, ok := s.tools.snapshot().named(req.Param("name"))
	if !ok || !s.visible(ctx, KindTool, t.def.Name) {
		return nil, noTool(req)
	}
	args, err := rawObject(req, "arguments")
	if err != nil {
		return nil, err
	}
	if how := t.def.Execution; how.TaskSupport != "" || req.Param("task") != nil {
		return s.callAsTask(ctx, how, args, func(ctx context.Context, args json.RawMessage) (Result, error) { return s.runTool(ctx, t, args) })
	}
	return s.runTool(ctx, t, args)
}

// runTool calls a tool; a failure becomes a result, a panic an error.
func (s *Server) runTool(ctx context.Context, t *toolEntry, args json.RawMessage) (Result, error) {
	var res *ToolResult
	err := s.eng.User.Run(ctx, t.def.Name, func() (err error) {
		if res, err = t.call(ctx, args); err != nil {
			return err
		}
		usable(res)
		if res.Structured != nil {
			res.checkStructured()
			if res.Content == nil { // TOOL-26-022
				said := *res // res may be of several calls
				said.Content = []Content{TextContent{Text: string(res.Structured)}}
				res = &said
			}
		}
		return t.held(res)
	})
	if err != nil {
		return toolFailure(ctx, err)
	}
	return res, nil
}

// toolFailure turns an error of a tool into a tool error, unless the error is meant for the
// protocol (TOOL-26: input faults and failures are results with isError).
func toolFailure(ctx context.Context, err error) (Result, error) {
	var rpc *Error
	var lacks *engine.LacksError
	var denied engine.Denial
	call := engine.From(ctx)
	switch {
	case errors.As(err, &rpc), errors.As(err, &denied), errors.Is(err, engine.ErrSuspended):
		return nil, err
	case errors.As(err, &lacks) && call != nil && !call.Peer.Revision.Sessions:
		return nil, err // modern revisions have a code for it
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = context.Cause(ctx)
	}
	return &ToolResult{Content: []Content{TextContent{Text: err.Error()}}, IsError: true}, nil
}
