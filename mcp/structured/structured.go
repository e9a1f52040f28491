// Package structured is for tools that return data for a program beside content of their own, such as
// an image, or a sentence for the model:
//
//	mcp.AddTool(srv, mcp.Tool{Name: "weather"}, func(ctx context.Context, in place) (structured.Result[weather], error) {
//		w, err := look(ctx, in)
//		return structured.Result[weather]{Value: w, Content: []mcp.Content{mcp.Text(w.Sentence())}}, err
//	})
package structured

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// Result is the result of a function for [mcp.AddTool]: structured content and content of its own. The
// output schema is that of T ([schema.ForOutput]), and a Value that does not obey it is an internal
// error. A T that is not an object, or may be another thing, such as a string or any, is the member
// "result" of the structured content.
//
// Content, and a list of it, cannot be the Value; set Content. In a field or a deeper list of T it is
// data, with the JSON of its Go struct, not the form of the specification.
//
// Callers before 2025-06-18 get Content, with the JSON of Value if Content has no text.
type Result[T any] struct {
	Value   T
	Content []mcp.Content // nil: the JSON of Value as text
	Meta    mcp.Meta
}

// scalar is the structured content for a T that is not an object.
type scalar[T any] struct {
	Result T `json:"result"`
}

// checkValue refuses types that AddTool sends as content.
func checkValue(t reflect.Type) error {
	block := t
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		block = t.Elem()
	}
	content := reflect.TypeFor[mcp.Content]()
	if t.Implements(content) || block.Implements(content) || t == reflect.TypeFor[*mcp.ToolResult]() {
		return fmt.Errorf("the Value of a structured.Result cannot be %s, which is content; use a struct", t)
	}
	return nil
}

// output returns the schema of the structured content, and whether it is that of a scalar.
func output[T any]() (out *schema.Output, isScalar bool, err error) {
	if err = checkValue(reflect.TypeFor[T]()); err != nil {
		return nil, false, err
	}
	if out, err = schema.ForOutput[T](); err != nil {
		return nil, false, err
	}
	if typ, _ := jsonx.Lookup(out.JSON(), "type"); string(typ) != `"object"` { // any has no type
		out, err = schema.ForOutput[scalar[T]]()
		return out, true, err
	}
	return out, false, nil
}

// OutputSchema returns the output schema of a tool with such results. It does not depend on r.
func (r Result[T]) OutputSchema() (json.RawMessage, error) {
	out, _, err := output[T]()
	if err != nil {
		return nil, err
	}
	return out.JSON(), nil
}

// ToolResult returns r as the result of a tool. The error is a [*schema.ValidationError] if Value does
// not obey the schema of its type, and says so if Value is content.
func (r Result[T]) ToolResult() (*mcp.ToolResult, error) {
	out, isScalar, err := output[T]()
	if v := any(r.Value); err == nil && v != nil {
		err = checkValue(reflect.TypeOf(v)) // T may be any
	}
	if err != nil {
		return nil, err
	}
	res := &mcp.ToolResult{Content: r.Content, Meta: r.Meta}
	if isScalar {
		res.Structured, err = out.Encode(scalar[T]{r.Value})
	} else {
		res.Structured, err = out.Encode(r.Value)
	}
	if err != nil {
		return nil, err
	}
	if res.Content == nil {
		text := res.Structured
		if isScalar {
			text, _ = jsonx.Lookup(text, "result")
		}
		res.Content = []mcp.Content{mcp.Text(string(text))}
	}
	return res, nil
}
