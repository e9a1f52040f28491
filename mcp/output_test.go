package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/schema"
)

// report has what may be nil in a result.
type report struct {
	Title *string           `json:"title"`
	Best  *point            `json:"best"`
	Old   *report           `json:"old"`
	Some  []*point          `json:"some"`
	By    map[string]*int   `json:"by"`
	Took  time.Duration     `json:"took,omitempty"`
	Note  *string           `json:"note,omitempty"`
	Level string            `json:"level,omitempty" enum:"low,high"`
	Count int               `json:"count,omitempty" default:"5"`
	Raw   json.RawMessage   `json:"raw"`
	Last  *time.Time        `json:"last"`
	Tags  map[string]string `json:"tags"`
}

// TOOL-26-023: a structured result fits the outputSchema that tools/list shows,
// whatever in it is nil; one that breaks the rules of its type, or is missing, is a fault of
// the server and not of the model (trap 19).
func TestResultFitsOutputSchema(t *testing.T) {
	type none = struct{}
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "zero"}, func(context.Context, none) (report, error) { return report{}, nil })
		mcp.AddTool(s, mcp.Tool{Name: "nils"}, func(context.Context, none) (*report, error) {
			return &report{Old: &report{Level: "low"}, Some: []*point{nil, {1, 2}}, By: map[string]*int{"a": nil}, Took: time.Minute}, nil
		})
		mcp.AddTool(s, mcp.Tool{Name: "odd_level"}, func(context.Context, none) (report, error) { return report{Level: "mid"}, nil })
		mcp.AddTool(s, mcp.Tool{Name: "nothing"}, func(context.Context, none) (*report, error) { return nil, nil })
		own := json.RawMessage(`{"type":"object","properties":{"x":{"maximum":2}},"required":["y"]}`)
		mcp.AddTool(s, mcp.Tool{Name: "own_good", OutputSchema: own}, func(context.Context, none) (point, error) { return point{2, 0}, nil })
		mcp.AddTool(s, mcp.Tool{Name: "own_bad", OutputSchema: own}, func(context.Context, none) (point, error) { return point{3, 0}, nil })
		// Where the values decide, the schema holds all the same.
		mcp.AddTool(s, mcp.Tool{Name: "text_only", OutputSchema: own}, func(context.Context, none) (*mcp.ToolResult, error) {
			return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("x")}}, nil
		})
		mcp.AddTool(s, mcp.Tool{Name: "any_bad", OutputSchema: own}, func(context.Context, none) (any, error) { return point{3, 0}, nil })
		for name, res := range map[string]*mcp.ToolResult{
			"untyped_good": {Structured: json.RawMessage(`{"y":1}`)},
			"untyped_bad":  {Structured: json.RawMessage(`{"x":3,"y":1}`)},
			"untyped_none": {Content: []mcp.Content{mcp.Text("x")}},
		} {
			if err := s.HandleTool(mcp.Tool{Name: name, OutputSchema: own}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return res, nil }); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	faults := map[string]string{
		"odd_level": `the result does not fit the output schema of the tool: level: must be one of "low", "high", got "mid"`,
		"nothing":   `the result does not fit the output schema of the tool: must be an object, got null`,
		"own_bad":   `the result does not fit the output schema of the tool: x: must be at most 2, got 3`,
	}
	for _, name := range []string{"text_only", "untyped_none"} {
		faults[name] = `it has no structured content; set ToolResult.Structured`
	}
	for _, name := range []string{"any_bad", "untyped_bad"} {
		faults[name] = `x: must be at most 2, got 3`
	}
	for _, rev := range []mcp.Revision{mcp.V2025_06_18, mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			s := mcptest.Connect(t, newServer(), nothing(), rev)
			for tool, err := range s.Tools(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				check, err := schema.Compile(tool.OutputSchema)
				if err != nil {
					t.Fatalf("%s: output schema %s: %v", tool.Name, tool.OutputSchema, err)
				}
				res, err := s.CallTool(t.Context(), tool.Name, nil)
				if want, bad := faults[tool.Name]; bad {
					var rpc *mcp.Error
					if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal || !strings.HasSuffix(rpc.Message, want) {
						t.Errorf("%s: got %v, %v, want an internal error with %q", tool.Name, res, err, want)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", tool.Name, err)
				}
				if err := check.Validate(res.Structured); err != nil || res.IsError {
					t.Errorf("%s: %s does not fit: %v\nschema %s", tool.Name, res.Structured, err, tool.OutputSchema)
				}
			}
			back, err := mcp.CallAs[report](t.Context(), s, "nils", nil)
			if err != nil || back.Took != time.Minute || back.Old == nil || back.Old.Old != nil || back.Some[0] != nil || *back.Some[1] != (point{1, 2}) {
				t.Errorf("CallAs = %+v, %v", back, err)
			}
		})
	}
}
