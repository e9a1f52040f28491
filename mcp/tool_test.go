package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

type point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

type shapes struct {
	Name   string            `json:"name" min:"1"`
	Points []point           `json:"points,omitempty" max:"2"`
	Kind   string            `json:"kind,omitempty" enum:"open,closed"`
	Meta   map[string]string `json:"meta,omitempty"`
}

func nothing() *mcp.Client { return &mcp.Client{Name: "c", Version: "1"} }

// results has a tool for each kind of Out.
func results() *mcp.Server {
	s := &mcp.Server{Name: "results", Version: "1"}
	add := func(name string) mcp.Tool { return mcp.Tool{Name: name} }
	type none = struct{}
	mcp.AddTool(s, add("string"), func(context.Context, none) (string, error) { return "a \"text\"\n", nil })
	mcp.AddTool(s, add("content"), func(context.Context, none) (mcp.Content, error) { return mcp.Text("one"), nil })
	mcp.AddTool(s, add("image"), func(context.Context, none) (mcp.ImageContent, error) {
		return mcp.ImageContent{Data: []byte{1, 2, 3}, MIMEType: "image/png"}, nil
	})
	mcp.AddTool(s, add("contents"), func(context.Context, none) ([]mcp.Content, error) {
		return []mcp.Content{mcp.Text("one"), mcp.Text("two")}, nil
	})
	mcp.AddTool(s, add("result"), func(context.Context, none) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("as it is")}, IsError: true, Meta: mcp.Meta{"example.com/k": json.RawMessage(`1`)}}, nil
	})
	mcp.AddTool(s, add("struct"), func(context.Context, none) (point, error) { return point{1, 2.5}, nil })
	mcp.AddTool(s, add("pointer"), func(context.Context, none) (*point, error) { return &point{3, 4}, nil })
	mcp.AddTool(s, add("number"), func(context.Context, none) (float64, error) { return 4.5, nil })
	mcp.AddTool(s, add("list"), func(context.Context, none) ([]int, error) { return []int{1, 2}, nil })
	mcp.AddTool(s, add("map"), func(context.Context, none) (map[string]int, error) { return map[string]int{"a": 1}, nil })
	mcp.AddTool(s, add("any"), func(context.Context, none) (any, error) { return map[string]bool{"b": true}, nil })
	mcp.AddTool(s, add("nil_list"), func(context.Context, none) ([]int, error) { return nil, nil })
	mcp.AddTool(s, add("no_content"), func(context.Context, none) ([]mcp.Content, error) { return nil, nil })
	mcp.AddTool(s, add("nil_result"), func(context.Context, none) (*mcp.ToolResult, error) { return nil, nil })
	mcp.AddTool(s, add("nil_any"), func(context.Context, none) (any, error) { return nil, nil })
	return s
}

// Models send null for what they leave out. It is taken as absence by tools and prompts
// that are Go functions, and left alone where the program brings its own schema (trap 17).
func TestNullIsAbsence(t *testing.T) {
	mcptest.LeakCheck(t)
	type in struct {
		Must  string `json:"must"`
		May   string `json:"may,omitempty"`
		Count int    `json:"count" default:"3"`
		Where *point `json:"where"`
	}
	call := func(_ context.Context, in in) (string, error) {
		return fmt.Sprintf("%q %q %d %v", in.Must, in.May, in.Count, in.Where == nil), nil
	}
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "typed"}, call)
	own := mcp.Tool{Name: "own", InputSchema: json.RawMessage(`{"type":"object","properties":{"may":{"type":["string","null"]},"count":{"type":"integer"}}}`)}
	if err := s.HandleTool(own, func(_ context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(string(args))}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	mcp.AddPrompt(s, mcp.Prompt{Name: "prompt"}, func(_ context.Context, in struct {
		Must string `json:"must"`
		May  string `json:"may,omitempty"`
	}) (string, error) {
		return in.Must + "|" + in.May, nil
	})
	bothEras(t, func(t *testing.T, rev mcp.Revision) {
		session := mcptest.Connect(t, s, nothing(), rev)
		for _, tt := range []struct{ tool, args, want string }{
			{"typed", `{"must":"a","may":null,"count":null,"where":null}`, `"a" "" 3 true`},
			{"typed", `{"must":"a","where":{"x":1,"y":null}}`, `where.y: must be a number, got null`},
			{"typed", `{"must":null}`, `must: must be a string, got null`},
			{"own", `{"may":null}`, `{"may":null}`},
			{"own", `{"count":null}`, `count: must be an integer, got null`},
		} {
			res, err := session.CallTool(t.Context(), tt.tool, json.RawMessage(tt.args))
			if err != nil || len(res.Content) != 1 || res.Content[0].(mcp.TextContent).Text != tt.want {
				t.Errorf("%s %s = %+v, %v; want %s", tt.tool, tt.args, res, err, tt.want)
			}
		}
	})
	// No client of ours sends this: the schema of the specification wants strings.
	p := rawClient(t, s)
	p.send(modern(1, "prompts/get", `{}`, `"name":"prompt","arguments":{"must":"a","may":null}`))
	if m := p.answer(1); !strings.Contains(string(m.Result), `"text":"a|"`) {
		t.Errorf("the prompt = %s", show(&m))
	}
}

// A lenient server reads numbers and booleans in strings, as some models write them.
func TestLenientArguments(t *testing.T) {
	type in struct {
		Days int  `json:"days" max:"9"`
		Big  bool `json:"big,omitempty"`
	}
	newServer := func(lenient bool) *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1", Lenient: lenient}
		mcp.AddTool(s, mcp.Tool{Name: "plan"}, func(_ context.Context, in in) (string, error) { return fmt.Sprint(in.Days, in.Big), nil })
		return s
	}
	bothEras(t, func(t *testing.T, rev mcp.Revision) {
		for _, tt := range []struct {
			lenient    bool
			args, want string
		}{
			{true, `{"days":"3","big":"true"}`, "3 true"},
			{true, `{"days":3}`, "3 false"},
			{true, `{"days":"30"}`, "days: must be at most 9, got 30"},
			{true, `{"days":"few"}`, "days: must be an integer, got string"},
			{false, `{"days":"3"}`, "days: must be an integer, got string"},
		} {
			res, err := mcptest.Connect(t, newServer(tt.lenient), nothing(), rev).CallTool(t.Context(), "plan", json.RawMessage(tt.args))
			if err != nil || res.Text() != tt.want {
				t.Errorf("lenient %v, %s: %+v, %v; want %s", tt.lenient, tt.args, res, err, tt.want)
			}
		}
	})
}

// Each kind of Out becomes a result that every revision can read. A value that is not an object is
// the member "result" of the structured content, because that is an object before 2026-07-28
// (TOOL-25-002, -003), and is described by an output schema (TOOL-26-011). Its JSON is a text block too
// (TOOL-26-022).
func TestResultsEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	tests := []struct {
		name, text, structured string
		since                  mcp.Revision // structured content is seen from
		isError                bool
	}{
		{name: "string", text: "a \"text\"\n"},
		{name: "content", text: "one"},
		{name: "contents", text: "one\ntwo"},
		{name: "result", text: "as it is", isError: true},
		{name: "struct", text: `{"x":1,"y":2.5}`, structured: `{"x":1,"y":2.5}`, since: mcp.V2025_06_18},
		{name: "pointer", text: `{"x":3,"y":4}`, structured: `{"x":3,"y":4}`, since: mcp.V2025_06_18},
		{name: "number", text: `4.5`, structured: `{"result":4.5}`, since: mcp.V2025_06_18},
		{name: "list", text: `[1,2]`, structured: `{"result":[1,2]}`, since: mcp.V2025_06_18},
		{name: "nil_list", text: `[]`, structured: `{"result":[]}`, since: mcp.V2025_06_18},
		{name: "map", text: `{"a":1}`, structured: `{"a":1}`, since: mcp.V2025_06_18},
		{name: "any", text: `{"b":true}`, structured: `{"b":true}`, since: mcp.V2025_06_18},
		{name: "no_content"},
		{name: "nil_any"},
		{name: "nil_result", text: "the tool returned no result", isError: true},
	}
	mcptest.Every(t, results, nothing, func(t *testing.T, s *mcp.Session) {
		for _, tt := range tests {
			res, err := s.CallTool(t.Context(), tt.name, nil)
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			want := tt.structured
			if s.Revision() < tt.since {
				want = ""
			}
			if res.Text() != tt.text || string(res.Structured) != want || res.IsError != tt.isError {
				t.Errorf("%s = text %q, structured %s, isError %v; want %q, %s, %v", tt.name, res.Text(), res.Structured, res.IsError, tt.text, want, tt.isError)
			}
		}
		res, err := s.CallTool(t.Context(), "image", nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]mcp.Content{mcp.ImageContent{Data: []byte{1, 2, 3}, MIMEType: "image/png"}}, res.Content); d != "" {
			t.Errorf("image:\n%s", d)
		}
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			has := tool.OutputSchema != nil
			want := map[string]mcp.Revision{"struct": mcp.V2025_06_18, "map": mcp.V2025_06_18, "pointer": mcp.V2025_06_18,
				"number": mcp.V2025_06_18, "list": mcp.V2025_06_18, "nil_list": mcp.V2025_06_18}[tool.Name]
			if expected := want != "" && s.Revision() >= want; has != expected {
				t.Errorf("%s has the output schema %s", tool.Name, tool.OutputSchema)
			}
		}
		got, err := mcp.CallAs[point](t.Context(), s, "struct", nil)
		if err != nil || got != (point{1, 2.5}) {
			t.Errorf("CallAs = %v, %v", got, err)
		}
		if got, err := mcp.CallAs[[]int](t.Context(), s, "list", nil); err != nil || len(got) != 2 {
			t.Errorf("CallAs = %v, %v", got, err)
		}
		var te *mcp.ToolError
		if _, err := mcp.CallAs[point](t.Context(), s, "result", nil); !errors.As(err, &te) || te.Tool != "result" {
			t.Errorf("CallAs of a failure = %v, want a ToolError", err)
		}
		if _, err := mcp.CallAs[point](t.Context(), s, "string", nil); err == nil {
			t.Error("CallAs of a text that is no JSON is no error")
		}
	})
}

// A value that is not an object is structured as the member "result", also where the Go type is not
// that of a plain scalar, and CallAs reads it back. A string is text alone.
func TestScalarResults(t *testing.T) {
	type color string
	type tree []tree
	type none = struct{}
	s := &mcp.Server{Name: "s", Version: "1"}
	seven, noon := 7, time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	add := func(name string, v any) {
		tool := mcp.Tool{Name: name}
		switch v := v.(type) {
		case bool:
			mcp.AddTool(s, tool, func(context.Context, none) (bool, error) { return v, nil })
		case color:
			mcp.AddTool(s, tool, func(context.Context, none) (color, error) { return v, nil })
		case *int:
			mcp.AddTool(s, tool, func(context.Context, none) (*int, error) { return v, nil })
		case tree:
			mcp.AddTool(s, tool, func(context.Context, none) (tree, error) { return v, nil })
		case time.Duration:
			mcp.AddTool(s, tool, func(context.Context, none) (time.Duration, error) { return v, nil })
		case time.Time:
			mcp.AddTool(s, tool, func(context.Context, none) (time.Time, error) { return v, nil })
		case []byte:
			mcp.AddTool(s, tool, func(context.Context, none) ([]byte, error) { return v, nil })
		case []point:
			mcp.AddTool(s, tool, func(context.Context, none) ([]point, error) { return v, nil })
		}
	}
	tests := []struct {
		name string
		v    any
		text string // and the value of result
	}{
		{"bool", true, `true`},
		{"named_string", color("red"), `"red"`},
		{"pointer", &seven, `7`},
		{"nil_pointer", (*int)(nil), `null`},
		{"recursive", tree{{}, {{}}}, `[[],[[]]]`},
		{"duration", 90 * time.Second, `"1m30s"`},
		{"time", noon, `"2026-01-02T12:00:00Z"`},
		{"bytes", []byte{1, 2}, `"AQI="`},
		{"objects", []point{{1, 2}}, `[{"x":1,"y":2}]`},
	}
	for _, tt := range tests {
		add(tt.name, tt.v)
	}
	for _, rev := range []mcp.Revision{mcp.V2025_03_26, mcp.V2025_06_18, mcp.V2026_07_28} {
		session := mcptest.Connect(t, s, nothing(), rev)
		for _, err := range session.Tools(t.Context()) { // CallTool compares results with the output schemas from here on
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range tests {
			want := `{"result":` + tt.text + `}`
			if rev == mcp.V2025_03_26 {
				want = ""
			}
			res, err := session.CallTool(t.Context(), tt.name, nil)
			if err != nil || res.Text() != tt.text || string(res.Structured) != want {
				t.Errorf("%s: %s = %+v, %v; want the text %s and the structured content %s", rev, tt.name, res, err, tt.text, want)
			}
		}
		if got, err := mcp.CallAs[time.Time](t.Context(), session, "time", nil); err != nil || !got.Equal(noon) {
			t.Errorf("%s: CallAs = %v, %v", rev, got, err)
		}
		if got, err := mcp.CallAs[*int](t.Context(), session, "nil_pointer", nil); err != nil || got != nil {
			t.Errorf("%s: CallAs = %v, %v", rev, got, err)
		}
		if got, err := mcp.CallAs[int](t.Context(), session, "objects", nil); err == nil {
			t.Errorf("%s: CallAs of a list as a number = %v", rev, got)
		}
	}
}

// loose has a schema of its own without a type.
type loose struct{ list bool }

func (loose) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"anyOf":[{"type":"array"},{"type":"object"}]}`)
}

func (l loose) MarshalJSON() ([]byte, error) {
	if l.list {
		return []byte(`[1]`), nil
	}
	return []byte(`{"a":1}`), nil
}

// Where no schema describes the values of Out, those that are not objects are the member "result", on
// every revision (TOOL-25-003). Where one does, values are as it says, and revisions that
// cannot have them get text.
func TestUntypedResults(t *testing.T) {
	own := json.RawMessage(`{"type":["array","object"]}`)
	values := []struct{ name, value, bare, wrapped string }{
		{"list", `[1, 2]`, `[1,2]`, `{"result":[1,2]}`},
		{"number", ` 4.5`, `4.5`, `{"result":4.5}`},
		{"string", `"a"`, `"a"`, `{"result":"a"}`},
		{"null", `null`, `null`, `{"result":null}`},
		{"object", `{"a":1}`, `{"a":1}`, `{"a":1}`},
	}
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		for _, v := range values {
			raw := json.RawMessage(v.value)
			mcp.AddTool(s, mcp.Tool{Name: "raw_" + v.name}, func(context.Context, struct{}) (json.RawMessage, error) { return raw, nil })
			mcp.AddTool(s, mcp.Tool{Name: "any_" + v.name}, func(context.Context, struct{}) (any, error) { return raw, nil })
		}
		mcp.AddTool(s, mcp.Tool{Name: "any_go"}, func(context.Context, struct{}) (any, error) { return []int{1, 2}, nil })
		mcp.AddTool(s, mcp.Tool{Name: "own", OutputSchema: own}, func(context.Context, struct{}) (any, error) { return []int{1, 2}, nil })
		mcp.AddTool(s, mcp.Tool{Name: "loose_list"}, func(context.Context, struct{}) (loose, error) { return loose{true}, nil })
		mcp.AddTool(s, mcp.Tool{Name: "loose_object"}, func(context.Context, struct{}) (loose, error) { return loose{}, nil })
		return s
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		for _, err := range s.Tools(t.Context()) { // CallTool compares results with the output schemas from here on
			if err != nil {
				t.Fatal(err)
			}
		}
		check := func(name, text, structured string) {
			t.Helper()
			if s.Revision() < mcp.V2025_06_18 {
				structured = ""
			}
			res, err := s.CallTool(t.Context(), name, nil)
			if err != nil || res.Text() != text || string(res.Structured) != structured {
				t.Errorf("%s = %+v, %v; want the text %s and the structured content %s", name, res, err, text, structured)
			}
		}
		for _, v := range values {
			check("raw_"+v.name, v.bare, v.wrapped)
			check("any_"+v.name, v.bare, v.wrapped)
		}
		check("any_go", `[1,2]`, `{"result":[1,2]}`)
		check("loose_object", `{"a":1}`, `{"a":1}`)
		if s.Revision() < mcp.V2026_07_28 {
			check("own", `[1,2]`, "")
			check("loose_list", `[1]`, "")
		} else {
			check("own", `[1,2]`, `[1,2]`)
			check("loose_list", `[1]`, `[1]`)
		}
		if got, err := mcp.CallAs[[]int](t.Context(), s, "any_list", nil); err != nil || len(got) != 2 {
			t.Errorf("CallAs = %v, %v", got, err)
		}
	})
}

// T-60 to T-68, INIT-25-014: content that a revision lacks becomes the nearest thing it has.
func TestContentEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	half := 0.5
	notes := &mcp.Annotations{Audience: []string{"user"}, Priority: &half, LastModified: "2026-01-02T03:04:05Z"}
	meta := mcp.Meta{"example.com/k": json.RawMessage(`{"v":1}`)}
	all := []mcp.Content{
		mcp.TextContent{Text: "t", Annotations: notes, Meta: meta},
		mcp.ImageContent{Data: []byte{0, 255}, MIMEType: "image/png", Annotations: notes, Meta: meta},
		mcp.AudioContent{Data: []byte("sound"), MIMEType: "audio/wav"},
		mcp.ResourceLink{Resource: mcp.Resource{URI: "file:///a", Name: "a", Title: "A", MIMEType: "text/plain", Size: 3, Icons: []mcp.Icon{{Src: "https://example.com/i.png"}}, Meta: meta}},
		mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "file:///b", MIMEType: "text/plain", Text: "", Meta: meta}, Annotations: notes, Meta: meta},
		mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "file:///c", MIMEType: "image/png", Blob: []byte{}}},
	}
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "all"}, func(context.Context, struct{}) ([]mcp.Content, error) { return all, nil })
		mcp.AddPrompt(s, mcp.Prompt{Name: "all"}, func(context.Context, struct{}) ([]mcp.PromptMessage, error) {
			var ms []mcp.PromptMessage
			for _, c := range all {
				ms = append(ms, mcp.PromptMessage{Role: "assistant", Content: c})
			}
			return ms, nil
		})
		return s
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		want := append([]mcp.Content(nil), all...)
		rev := s.Revision()
		if rev < mcp.V2025_11_25 {
			link := all[3].(mcp.ResourceLink)
			link.Icons = nil
			want[3] = link
		}
		if rev < mcp.V2025_06_18 {
			old := &mcp.Annotations{Audience: notes.Audience, Priority: notes.Priority}
			want[0] = mcp.TextContent{Text: "t", Annotations: old}
			want[1] = mcp.ImageContent{Data: []byte{0, 255}, MIMEType: "image/png", Annotations: old}
			want[3] = mcp.TextContent{Text: "a: file:///a"}
			want[4] = mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "file:///b", MIMEType: "text/plain"}, Annotations: old}
		}
		if rev < mcp.V2025_03_26 {
			want[2] = mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "data:audio", MIMEType: "audio/wav", Blob: []byte("sound")}}
		}
		res, err := s.CallTool(t.Context(), "all", nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, res.Content); d != "" {
			t.Errorf("tool content (-want +got):\n%s", d)
		}
		prompt, err := s.GetPrompt(t.Context(), "all", nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []mcp.Content
		for _, m := range prompt.Messages {
			got = append(got, m.Content)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("prompt content (-want +got):\n%s", d)
		}
	})
}

// TOOL-26-022: a result of a tool that has only structured content gets its JSON as text, unless the
// tool gives content. The result itself does not change.
func TestTextOfStructured(t *testing.T) {
	meta := mcp.Meta{"example.com/k": json.RawMessage(`1`)}
	alone := &mcp.ToolResult{Structured: json.RawMessage(`{"a": 1}`), Meta: meta}
	failed := &mcp.ToolResult{Structured: json.RawMessage(`{"a":2}`), IsError: true}
	said := &mcp.ToolResult{Structured: json.RawMessage(`{"a":3}`), Content: []mcp.Content{mcp.Text("three")}}
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		for name, res := range map[string]*mcp.ToolResult{"alone": alone, "failed": failed, "said": said, "nothing": {}} {
			if err := s.HandleTool(mcp.Tool{Name: name}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return res, nil }); err != nil {
				t.Fatal(err)
			}
		}
		mcp.AddTool(s, mcp.Tool{Name: "typed"}, func(context.Context, struct{}) (*mcp.ToolResult, error) { return alone, nil })
		return s
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		for _, tt := range []struct {
			name, text, structured string
			isError                bool
		}{
			{"alone", `{"a": 1}`, `{"a": 1}`, false},
			{"typed", `{"a": 1}`, `{"a": 1}`, false},
			{"failed", `{"a":2}`, `{"a":2}`, true},
			{"said", "three", `{"a":3}`, false},
			{"nothing", "", "", false},
		} {
			if s.Revision() < mcp.V2025_06_18 {
				tt.structured = ""
			}
			res, err := s.CallTool(t.Context(), tt.name, nil)
			if err != nil || res.Text() != tt.text || string(res.Structured) != tt.structured || res.IsError != tt.isError {
				t.Errorf("%s = %+v, %v", tt.name, res, err)
			} else if tt.text == `{"a": 1}` && string(res.Meta["example.com/k"]) != "1" {
				t.Errorf("%s has the meta %v", tt.name, res.Meta)
			}
		}
	})
	if alone.Content != nil {
		t.Errorf("the result of the tool has become %+v", alone)
	}
}

// T-62, T-63, TOOL-25-003: a structured value that a tool sends without text is not lost.
func TestStructuredWithoutText(t *testing.T) {
	newServer := func() *mcp.Server {
		return one(func(_ context.Context, in text) (*mcp.ToolResult, error) {
			return &mcp.ToolResult{Content: []mcp.Content{}, Structured: json.RawMessage(in.Text)}, nil
		})
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		for value, since := range map[string]mcp.Revision{`{"a":1}`: mcp.V2025_06_18, `[1]`: mcp.V2026_07_28, `null`: mcp.V2026_07_28} {
			res, err := s.CallTool(t.Context(), "ask", text{value})
			if err != nil {
				t.Errorf("%s: %v", value, err)
				continue
			}
			if s.Revision() >= since {
				if string(res.Structured) != value || len(res.Content) != 0 {
					t.Errorf("%s = %+v", value, res)
				}
			} else if res.Text() != value || res.Structured != nil {
				t.Errorf("%s = %+v, want it as text", value, res)
			}
		}
	})
}

// T-64 to T-66: descriptions in lists lose what a revision lacks, and T-65 moves a
// tool's title among the annotations.
func TestToolDescriptionsEverywhere(t *testing.T) {
	yes := true
	def := mcp.Tool{
		Name: "full", Title: "Full", Description: "has everything",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","x-own":[1,2]}},"x-other":true}`),
		Annotations: &mcp.ToolAnnotations{ReadOnly: &yes}, Icons: []mcp.Icon{{Src: "https://example.com/i.png", Sizes: []string{"any"}}},
		Meta: mcp.Meta{"example.com/k": json.RawMessage(`1`)},
	}
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Title: "Server", Version: "1"}
		mcp.AddTool(s, def, func(context.Context, json.RawMessage) (string, error) { return "", nil })
		return s
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		want := def
		rev := s.Revision()
		if rev < mcp.V2025_11_25 {
			want.Icons = nil
		}
		if rev < mcp.V2025_06_18 {
			want.Title, want.Meta = "", nil
			want.Annotations = &mcp.ToolAnnotations{ReadOnly: &yes, Title: "Full"}
		}
		if rev < mcp.V2025_03_26 {
			want.Annotations = nil
		}
		for got, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		}
	})
}

// SEP-1303: errors of a tool, faults of arguments (TOOL-26-025, TOOL-2506-001), errors of the
// protocol.
func TestToolErrorsEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "shape"}, func(context.Context, shapes) (string, error) { return "ok", nil })
		mcp.AddTool(s, mcp.Tool{Name: "fail"}, func(context.Context, struct{}) (string, error) { return "", errors.New("no paper left") })
		mcp.AddTool(s, mcp.Tool{Name: "rpc"}, func(context.Context, struct{}) (string, error) {
			return "", fmt.Errorf("wrapped: %w", &mcp.Error{Code: 1234, Message: "own code", Data: json.RawMessage(`{"k":[1]}`)})
		})
		if err := s.HandleTool(mcp.Tool{Name: "untyped", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":3}},"required":["n"]}`)},
			func(_ context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
				return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("untyped" + string(args))}}, nil
			}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		res, err := s.CallTool(t.Context(), "fail", nil)
		if err != nil || !res.IsError || res.Text() != "no paper left" {
			t.Errorf("fail = %+v, %v", res, err)
		}
		faults := map[string]any{
			"name":        map[string]any{},
			"points[1].y": map[string]any{"name": "n", "points": []any{map[string]any{"x": 1, "y": 2}, map[string]any{"x": 1, "y": "2"}}},
			"kind":        map[string]any{"name": "n", "kind": "other"},
			"points":      map[string]any{"name": "n", "points": []point{{}, {}, {}}},
			"meta.k":      map[string]any{"name": "n", "meta": map[string]any{"k": 1}},
			"extra":       map[string]any{"name": "n", "extra": 1},
			"Name":        map[string]any{"Name": "n", "name": "n"},
		}
		for path, args := range faults {
			res, err := s.CallTool(t.Context(), "shape", args)
			if err != nil || !res.IsError || !strings.Contains(res.Text(), path) {
				t.Errorf("shape with a fault at %s = %+v, %v; want a tool error that names it", path, res, err)
			}
		}
		both, err := s.CallTool(t.Context(), "shape", map[string]any{"kind": "other", "points": 3})
		if err != nil || !strings.Contains(both.Text(), "kind") || !strings.Contains(both.Text(), "points") || !strings.Contains(both.Text(), "name") {
			t.Errorf("three faults at once = %+v, %v", both, err)
		}
		res, err = s.CallTool(t.Context(), "untyped", map[string]int{"n": 2})
		if err != nil || !res.IsError || !strings.Contains(res.Text(), "n") {
			t.Errorf("untyped = %+v, %v", res, err)
		}
		if got, err := mcp.CallAs[string](t.Context(), s, "untyped", map[string]int{"n": 3}); err != nil || got != `untyped{"n":3}` {
			t.Errorf("untyped = %q, %v", got, err)
		}
		var rpc *mcp.Error
		if _, err := s.CallTool(t.Context(), "rpc", nil); !errors.As(err, &rpc) || rpc.Code != 1234 || rpc.Message != "own code" || string(rpc.Data) != `{"k":[1]}` {
			t.Errorf("rpc = %v", err)
		}
		if _, err := s.CallTool(t.Context(), "none", nil); !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeInvalidParams}) {
			t.Errorf("an unknown tool = %v, want %d", err, jsonrpc.CodeInvalidParams)
		}
		if _, err := s.GetPrompt(t.Context(), "none", nil); err == nil {
			t.Error("an unknown prompt is no error")
		}
		if _, err := s.CallTool(t.Context(), "shape", 3); err == nil {
			t.Error("arguments that are no object are no error")
		}
	})
}

// Names of tools are compared byte for byte (TOOL-26-014), and each is of one tool
// (TOOL-26-017).
func TestNamesOfTools(t *testing.T) {
	s := &mcp.Server{Name: "s", Version: "1"}
	add := func(name, says string) {
		mcp.AddTool(s, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return says, nil })
	}
	add("echo", "old")
	add("Echo", "upper")
	add("echo", "lower")
	p := rawClient(t, s)
	p.send(modern(1, "tools/list", `{}`, ""))
	if m := p.answer(1); strings.Count(string(m.Result), `"name":"echo"`) != 1 || strings.Count(string(m.Result), `"name":"Echo"`) != 1 {
		t.Errorf("tools are %s", show(&m))
	}
	for i, tt := range []struct{ name, want string }{{"echo", "lower"}, {"Echo", "upper"}, {"ECHO", ""}, {"echo ", ""}} {
		id := int64(i + 2)
		p.send(modern(id, "tools/call", `{}`, `"name":`+quote(tt.name)))
		if m := p.answer(id); tt.want == "" {
			wantError(t, m, jsonrpc.CodeInvalidParams)
		} else if !strings.Contains(string(m.Result), tt.want) {
			t.Errorf("%s = %s, want %s", tt.name, show(&m), tt.want)
		}
	}
}
