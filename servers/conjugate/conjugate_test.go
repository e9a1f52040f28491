package conjugate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/conjugate"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

type cell struct {
	Verb     string `json:"verb"`
	Tense    string `json:"tense"`
	Person   string `json:"person"`
	Form     string `json:"form"`
	Singular string `json:"singular"`
	Plural   string `json:"plural"`
}

func newServer() *mcp.Server { return conjugate.New(conjugate.Options{}) }

func TestEveryRevision(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		want := cell{"go", "past", "third", "", "he/she/it went", "they went"}
		got, err := mcp.CallAs[cell](t.Context(), s, "conjugate", map[string]any{"verb": "go", "tense": "past", "person": "third"})
		if err != nil || got != want {
			t.Errorf("conjugate = %+v, %v; want %+v", got, err, want)
		}
		res, err := s.CallTool(t.Context(), "conjugate", map[string]any{"verb": "shine", "tense": "past"})
		if err != nil || !res.IsError || !strings.Contains(res.Text(), "shine") || !strings.Contains(res.Text(), "person") {
			t.Errorf("shine without a person = %v, %v; want a tool error that names both", res, err)
		}

		for _, tense := range []string{"past_simple", "past  simple", " Past\tSimple ", "PAST"} {
			res, err := s.CallTool(t.Context(), "conjugate", map[string]any{"verb": "Eat", "tense": tense, "person": "3rd_Singular"})
			if err != nil || res.IsError || res.Text() != "ate" {
				t.Errorf("Eat, %q, 3rd_Singular = %v, %v; want ate", tense, res, err)
			}
			p, err := s.GetPrompt(t.Context(), "conjugate_verb", map[string]string{"verb": "Eat", "tense": tense, "person": "3rd_Singular"})
			if err != nil || !strings.Contains(p.Messages[0].Content.(mcp.TextContent).Text, `"eat" in one form, past`) {
				t.Errorf("prompt of Eat, %q, 3rd_Singular = %v, %v", tense, p, err)
			}
		}
		res, err = s.CallTool(t.Context(), "conjugate", map[string]any{"verb": "eat", "tense": "pastsimple", "person": "third"})
		if err != nil || !res.IsError || !strings.Contains(res.Text(), `"past participle", "simple future"`) {
			t.Errorf("pastsimple = %v, %v; want a tool error that names the tenses", res, err)
		}
		for _, tense := range []string{"past simple", "past"} {
			res, err := s.CallTool(t.Context(), "conjugate", map[string]any{"verb": "eat", "tense": tense, "person": "3rd singular"})
			if err != nil || res.IsError || len(res.Content) != 1 || res.Text() != "ate" {
				t.Fatalf("eat, %s, 3rd singular = %v, %v; want the text ate", tense, res, err)
			}
			if s.Revision() < mcp.V2025_06_18 { // no structured content
				continue
			}
			var ate cell
			if err := json.Unmarshal(res.Structured, &ate); err != nil || ate != (cell{"eat", tense, "3rd singular", "ate", "he/she/it ate", "they ate"}) {
				t.Errorf("eat, %s, 3rd singular = %+v, %v", tense, ate, err)
			}
		}

		p, err := s.GetPrompt(t.Context(), "conjugate_verb", map[string]string{"verb": "be", "tense": "present_perfect", "person": "first"})
		if err != nil || len(p.Messages) != 1 {
			t.Fatalf("prompt = %v, %v", p, err)
		}
		text := p.Messages[0].Content.(mcp.TextContent).Text
		for _, part := range []string{`"be"`, "present perfect tense", "first person", `"I have been"`, `"we have been"`} {
			if !strings.Contains(text, part) {
				t.Errorf("prompt %q lacks %s", text, part)
			}
		}
		p, err = s.GetPrompt(t.Context(), "conjugate_verb", map[string]string{"verb": "eat", "tense": "past participle", "person": "1st singular"})
		if err != nil || !strings.Contains(p.Messages[0].Content.(mcp.TextContent).Text, `"eat" in one form, past participle, 1st singular: "eaten"`) {
			t.Errorf("prompt of one form = %v, %v", p, err)
		}
		var e *mcp.Error
		if _, err := s.GetPrompt(t.Context(), "conjugate_verb", map[string]string{"verb": "be", "tense": "aorist", "person": "first"}); !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("aorist = %v, want invalid params", err)
		}

		all, err := s.ReadResource(t.Context(), "conjugate://verbs")
		if err != nil {
			t.Fatal(err)
		}
		var cells []cell
		if err := json.Unmarshal([]byte(all.Contents[0].Text), &cells); err != nil || len(cells) != 465 {
			t.Errorf("table of %d cells, %v; want 465", len(cells), err)
		}
		one, err := s.ReadResource(t.Context(), "conjugate://verbs/go")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(one.Contents[0].Text), &cells); err != nil || len(cells) != 15 || cells[5] != want {
			t.Errorf("go = %d cells, %v; want 15, the sixth %+v", len(cells), err, want)
		}
		if _, err := s.ReadResource(t.Context(), "conjugate://verbs/shine"); !errors.As(err, &e) {
			t.Errorf("conjugate://verbs/shine = %v, want not found", err)
		}
	})
}

func TestCompletions(t *testing.T) {
	s := mcptest.Connect(t, newServer(), &mcp.Client{}, mcp.V2026_07_28)
	prompt, template := mcp.Feature{Kind: mcp.KindPrompt, Name: "conjugate_verb"}, mcp.Feature{Kind: mcp.KindResourceTemplate, Name: "conjugate://verbs/{verb}"}
	tests := []struct {
		of              mcp.Feature
		argument, typed string
		want            []string
	}{
		{prompt, "verb", "s", []string{"say", "see", "stop", "study", "start"}},
		{prompt, "verb", "St", []string{"stop", "study", "start"}},
		{prompt, "verb", "x", []string{}},
		{prompt, "tense", "", []string{"present", "past", "future", "present_perfect", "past_perfect", "infinitive", "present simple", "past simple", "past participle", "simple future"}},
		{prompt, "tense", "pa", []string{"past", "past_perfect", "past simple", "past participle"}},
		{prompt, "person", "", []string{"first", "second", "third", "1st singular", "2nd singular", "3rd singular"}},
		{prompt, "person", "t", []string{"third"}},
		{template, "verb", "w", []string{"write", "work", "walk", "watch", "want"}},
	}
	for _, tt := range tests {
		got, err := s.Complete(t.Context(), tt.of, tt.argument, tt.typed, nil)
		if err != nil {
			t.Errorf("%s %q: %v", tt.argument, tt.typed, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got.Values); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", tt.argument, tt.typed, diff)
		}
	}
}

// The tool's schema lists all values.
func TestEnums(t *testing.T) {
	s := mcptest.Connect(t, newServer(), &mcp.Client{}, mcp.V2026_07_28)
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Properties map[string]struct{ Enum []string }
			Required   []string
		}
		if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]int{"verb": 31, "tense": 10, "person": 6} {
			if got := len(schema.Properties[name].Enum); got != want {
				t.Errorf("%s has %d values, want %d", name, got, want)
			}
		}
		if len(schema.Required) != 3 {
			t.Errorf("required %q, want all three", schema.Required)
		}
	}
}
