package structured_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/structured"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A Result has structured content, which obeys the schema of its type, beside the content
// that the function gives; on every revision nothing of it is lost.
func TestResult(t *testing.T) {
	type level struct {
		Level string `json:"level" enum:"low,high"`
	}
	type none = struct{}
	picture := mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"}
	server := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		add := func(name string, v structured.Result[level]) {
			mcp.AddTool(s, mcp.Tool{Name: name}, func(context.Context, none) (structured.Result[level], error) { return v, nil })
		}
		add("text", structured.Result[level]{Value: level{"low"}, Content: []mcp.Content{mcp.Text("rather low")}, Meta: mcp.Meta{"example.com/k": json.RawMessage(`1`)}})
		add("image", structured.Result[level]{Value: level{"high"}, Content: []mcp.Content{picture}})
		add("alone", structured.Result[level]{Value: level{"high"}})
		add("bad", structured.Result[level]{Value: level{"odd"}, Content: []mcp.Content{mcp.Text("odd")}})
		mcp.AddTool(s, mcp.Tool{Name: "word"}, func(context.Context, none) (structured.Result[string], error) {
			return structured.Result[string]{Value: "ate", Content: []mcp.Content{mcp.Text("It is ate.")}}, nil
		})
		return s
	}
	mcptest.Every(t, server, client, func(t *testing.T, s *mcp.Session) {
		for tool, err := range s.Tools(t.Context()) {
			if has := tool != nil && tool.OutputSchema != nil; err != nil || has != (s.Revision() >= mcp.V2025_06_18) {
				t.Errorf("%v has the output schema %s", tool, tool.OutputSchema)
			}
		}
		for _, tt := range []struct {
			name, structured, text string // text before 2025-06-18 if there is none since
			blocks                 int
		}{
			{"text", `{"level":"low"}`, "rather low", 1},
			{"image", `{"level":"high"}`, `{"level":"high"}`, 1},
			{"alone", `{"level":"high"}`, `{"level":"high"}`, 1},
			{"word", `{"result":"ate"}`, "It is ate.", 1},
		} {
			res, err := s.CallTool(t.Context(), tt.name, nil)
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			old := s.Revision() < mcp.V2025_06_18
			if old {
				tt.structured = ""
			}
			if tt.name == "image" {
				if _, ok := res.Content[0].(mcp.ImageContent); !ok || res.Text() != "" != old {
					t.Errorf("image = %+v", res)
				}
			} else if res.Text() != tt.text || len(res.Content) != tt.blocks {
				t.Errorf("%s = %+v, want the text %s", tt.name, res, tt.text)
			}
			if string(res.Structured) != tt.structured {
				t.Errorf("%s = %s, want %s", tt.name, res.Structured, tt.structured)
			}
			if tt.name == "text" && string(res.Meta["example.com/k"]) != "1" {
				t.Errorf("the meta of text is %v", res.Meta)
			}
		}
		var rpc *mcp.Error
		if _, err := s.CallTool(t.Context(), "bad", nil); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal || !strings.Contains(rpc.Message, `"odd"`) {
			t.Errorf("a value that breaks its schema: %v", err)
		}
	})
}

func client() *mcp.Client { return &mcp.Client{Name: "c", Version: "1"} }

func TestFaults(t *testing.T) {
	type none = struct{}
	s := &mcp.Server{Name: "s", Version: "1"}
	for want, add := range map[string]func(){
		"which is content; use a struct": func() {
			mcp.AddTool(s, mcp.Tool{Name: "x"}, func(context.Context, none) (v structured.Result[mcp.TextContent], err error) { return })
		},
		"cannot be []mcp.TextContent, which is content": func() {
			mcp.AddTool(s, mcp.Tool{Name: "x"}, func(context.Context, none) (v structured.Result[[]mcp.TextContent], err error) { return })
		},
		"a result cannot be *structured.Result": func() {
			mcp.AddTool(s, mcp.Tool{Name: "x"}, func(context.Context, none) (v *structured.Result[int], err error) { return })
		},
		"chan int has no JSON form": func() {
			mcp.AddTool(s, mcp.Tool{Name: "x"}, func(context.Context, none) (v structured.Result[chan int], err error) { return })
		},
	} {
		func() {
			defer func() {
				if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}()
			add()
		}()
	}
}

// A Value whose type may hold anything is the member "result", so that callers of 2025-11-25 get it
// beside content of its own.
func TestResultOfAnyType(t *testing.T) {
	type none = struct{}
	said := []mcp.Content{mcp.Text("three numbers")}
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "any"}, func(context.Context, none) (structured.Result[any], error) {
			return structured.Result[any]{Value: []int{1, 2, 3}, Content: said}, nil
		})
		mcp.AddTool(s, mcp.Tool{Name: "raw"}, func(context.Context, none) (structured.Result[json.RawMessage], error) {
			return structured.Result[json.RawMessage]{Value: json.RawMessage(`[1,2,3]`), Content: said}, nil
		})
		session := mcptest.Connect(t, s, client(), rev)
		for _, name := range []string{"any", "raw"} {
			res, err := session.CallTool(t.Context(), name, nil)
			if err != nil || string(res.Structured) != `{"result":[1,2,3]}` || res.Text() != "three numbers" {
				t.Errorf("%s, %s: %+v, %v", rev, name, res, err)
			}
		}
	}
}

// A Result that a function returns as any is that Result, and so is a pointer to one.
func TestResultAsAny(t *testing.T) {
	type level struct {
		Level string `json:"level" enum:"low,high"`
	}
	said := []mcp.Content{mcp.Text("rather low")}
	values := map[string]any{
		"value":   structured.Result[level]{Value: level{"low"}, Content: said},
		"pointer": &structured.Result[level]{Value: level{"low"}, Content: said},
		"bad":     structured.Result[level]{Value: level{"odd"}, Content: said},
		"nil":     (*structured.Result[level])(nil),
	}
	server := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		for name, v := range values {
			mcp.AddTool(s, mcp.Tool{Name: name}, func(context.Context, struct{}) (any, error) { return v, nil })
		}
		return s
	}
	mcptest.Every(t, server, client, func(t *testing.T, s *mcp.Session) {
		want := `{"level":"low"}`
		if s.Revision() < mcp.V2025_06_18 {
			want = ""
		}
		for _, name := range []string{"value", "pointer"} {
			res, err := s.CallTool(t.Context(), name, nil)
			if err != nil || string(res.Structured) != want || res.Text() != "rather low" {
				t.Errorf("%s = %+v, %v", name, res, err)
			}
		}
		var rpc *mcp.Error
		if _, err := s.CallTool(t.Context(), "bad", nil); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal || !strings.Contains(rpc.Message, `"odd"`) {
			t.Errorf("a value that breaks its schema: %v", err)
		}
		if res, err := s.CallTool(t.Context(), "nil", nil); err != nil || !res.IsError || res.Text() != "the tool returned no result" {
			t.Errorf("a nil pointer: %+v, %v", res, err)
		}
	})
}

// Content cannot be a Value, whatever the type of Value. In a field of Value it is data.
func TestContentAsValue(t *testing.T) {
	for _, v := range []any{mcp.Text("x"), []mcp.TextContent{{Text: "x"}}, []mcp.Content{}, &mcp.ToolResult{}} {
		if res, err := (structured.Result[any]{Value: v}).ToolResult(); err == nil || !strings.Contains(err.Error(), "which is content") {
			t.Errorf("%T: %+v, %v", v, res, err)
		}
	}
	type noted struct {
		Note mcp.TextContent `json:"note"`
	}
	res, err := structured.Result[noted]{Value: noted{mcp.TextContent{Text: "x"}}}.ToolResult()
	if err != nil || string(res.Structured) != `{"note":{"Text":"x","Annotations":null,"Meta":{}}}` {
		t.Errorf("%+v, %v", res, err)
	}
}
