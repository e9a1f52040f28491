package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

type page struct {
	Lang string `json:"lang"`
	Path string `json:"path"`
}

func library() *mcp.Server {
	s := &mcp.Server{Name: "library", Version: "1"}
	add := func(name string) mcp.Resource { return mcp.Resource{URI: "lib:" + name, Name: name} }
	mcp.AddResource(s, add("text"), func(context.Context) (string, error) { return "plain", nil })
	mcp.AddResource(s, add("empty"), func(context.Context) (string, error) { return "", nil })
	mcp.AddResource(s, add("blob"), func(context.Context) ([]byte, error) { return []byte{0, 1, 255}, nil })
	mcp.AddResource(s, add("nil"), func(context.Context) ([]byte, error) { return nil, nil })
	mcp.AddResource(s, add("json"), func(context.Context) (point, error) { return point{1, 2}, nil })
	mcp.AddResource(s, mcp.Resource{URI: "lib:typed", Name: "typed", MIMEType: "text/markdown"}, func(context.Context) (string, error) { return "# Hi", nil })
	mcp.AddResource(s, add("folder"), func(context.Context) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{{URI: "lib:folder/1", Text: "1"}, {URI: "lib:folder/2", Blob: []byte("2"), MIMEType: "image/png"}}, nil
	})
	mcp.AddResource(s, add("result"), func(context.Context) (*mcp.ReadResult, error) {
		return &mcp.ReadResult{Contents: []mcp.ResourceContents{{URI: "lib:other", Text: "x"}}, Meta: mcp.Meta{"example.com/k": json.RawMessage(`1`)}}, nil
	})
	mcp.AddResource(s, add("broken"), func(context.Context) (string, error) { return "", errors.New("disk on fire") })
	mcp.AddResource(s, add("asks"), func(ctx context.Context) (string, error) {
		c, err := mcp.Elicit[color](ctx, "Which page?")
		return c.Color, err
	})
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{
		URITemplate: "page://{lang}/{+path}", Name: "page", MIMEType: "text/html",
		Complete: map[string]mcp.CompleteFunc{"lang": complete("de", "en", "es")},
	}, func(_ context.Context, in page) (string, error) {
		if in.Lang == "xx" {
			return "", mcp.ResourceNotFound("page://xx/" + in.Path)
		}
		return in.Lang + " of " + in.Path, nil
	})
	mcp.AddPrompt(s, mcp.Prompt{Name: "greet", Complete: map[string]mcp.CompleteFunc{"name": complete("Ada", "Alan")}},
		func(_ context.Context, in struct {
			Name string `json:"name" doc:"who"`
			Tone string `json:"tone,omitempty" title:"Tone"`
		}) (string, error) {
			if in.Tone == "" {
				in.Tone = "warm"
			}
			return in.Tone + " hello, " + in.Name, nil
		})
	mcp.AddPrompt(s, mcp.Prompt{Name: "asks"}, func(ctx context.Context, _ struct{}) (mcp.PromptMessage, error) {
		c, err := mcp.Elicit[color](ctx, "Which?")
		return mcp.PromptMessage{Role: "assistant", Content: mcp.Text(c.Color)}, err
	})
	return s
}

func complete(values ...string) mcp.CompleteFunc {
	return func(_ context.Context, prefix string, others map[string]string) ([]string, error) {
		if prefix == "many" {
			return make([]string, 250), nil
		}
		if prefix == "others" {
			return []string{fmt.Sprint(others)}, nil
		}
		var out []string
		for _, v := range values {
			if strings.HasPrefix(strings.ToLower(v), strings.ToLower(prefix)) {
				out = append(out, v)
			}
		}
		return out, nil
	}
}

// Every kind of Out, templates with variables, and what does not exist, which is an
// error and no empty result (RES-26-009, -012, RES-25-002).
func TestResourcesEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	want := map[string][]mcp.ResourceContents{
		"lib:text":            {{URI: "lib:text", MIMEType: "text/plain", Text: "plain"}},
		"lib:empty":           {{URI: "lib:empty", MIMEType: "text/plain"}},
		"lib:blob":            {{URI: "lib:blob", MIMEType: "application/octet-stream", Blob: []byte{0, 1, 255}}},
		"lib:nil":             {{URI: "lib:nil", MIMEType: "application/octet-stream", Blob: []byte{}}},
		"lib:json":            {{URI: "lib:json", MIMEType: "application/json", Text: `{"x":1,"y":2}`}},
		"lib:typed":           {{URI: "lib:typed", MIMEType: "text/markdown", Text: "# Hi"}},
		"lib:folder":          {{URI: "lib:folder/1", MIMEType: "application/json", Text: "1"}, {URI: "lib:folder/2", MIMEType: "image/png", Blob: []byte("2")}},
		"lib:result":          {{URI: "lib:other", Text: "x"}},
		"page://de/a/b":       {{URI: "page://de/a/b", MIMEType: "text/html", Text: "de of a/b"}},
		"page://en/%C3%A4%20": {{URI: "page://en/%C3%A4%20", MIMEType: "text/html", Text: "en of ä "}},
	}
	mcptest.Every(t, library, func() *mcp.Client { return answering("accept", map[string]any{"color": "red"}) }, func(t *testing.T, s *mcp.Session) {
		for uri, contents := range want {
			got, err := s.ReadResource(t.Context(), uri)
			if err != nil {
				t.Errorf("%s: %v", uri, err)
				continue
			}
			if d := cmp.Diff(contents, got.Contents); d != "" {
				t.Errorf("%s (-want +got):\n%s", uri, d)
			}
		}
		missing := mcp.CodeResourceNotFound
		if s.Revision() == mcp.V2026_07_28 {
			missing = jsonrpc.CodeInvalidParams
		}
		for _, uri := range []string{"lib:none", "page://xx/y"} {
			var rpc *mcp.Error
			if _, err := s.ReadResource(t.Context(), uri); !errors.As(err, &rpc) || rpc.Code != missing {
				t.Errorf("read %q = %v, want error %d", uri, err, missing)
			}
		}
		if _, err := s.ReadResource(t.Context(), "lib:broken"); !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeInternal}) || !strings.Contains(err.Error(), "disk on fire") { // RES-26-010
			t.Errorf("a resource that fails = %v", err)
		}
		got, err := s.ReadResource(t.Context(), "lib:asks")
		if !asks(s.Revision()) {
			if err == nil {
				t.Errorf("a resource that asks = %v, want an error", got)
			}
		} else if err != nil || got.Contents[0].Text != "red" {
			t.Errorf("a resource that asks = %v, %v", got, err)
		}
		var names []string
		for r, err := range s.Resources(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != "text empty blob nil json typed folder result broken asks" {
			t.Errorf("resources %s", got)
		}
		for r, err := range s.ResourceTemplates(t.Context()) {
			if err != nil || r.URITemplate != "page://{lang}/{+path}" || r.MIMEType != "text/html" {
				t.Errorf("template %+v, %v", r, err)
			}
		}
	})
}

// Prompts with arguments and questions, and completion of at most 100 values (COMP-26-002).
// Requests for a prompt or value that does not exist, or with arguments that do not fit, are
// refused before a handler runs (PROM-26-008, -009, COMP-26-004).
func TestPromptsEverywhere(t *testing.T) {
	mcptest.LeakCheck(t)
	mcptest.Every(t, library, func() *mcp.Client { return answering("accept", map[string]any{"color": "red"}) }, func(t *testing.T, s *mcp.Session) {
		res, err := s.GetPrompt(t.Context(), "greet", map[string]string{"name": "Ada"})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]mcp.PromptMessage{mcp.User("warm hello, Ada")}, res.Messages); d != "" {
			t.Errorf("greet (-want +got):\n%s", d)
		}
		for name, args := range map[string]map[string]string{"greet": nil, "none": {}} {
			if _, err := s.GetPrompt(t.Context(), name, args); !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeInvalidParams}) {
				t.Errorf("%s with %v = %v, want %d", name, args, err, jsonrpc.CodeInvalidParams)
			}
		}
		res, err = s.GetPrompt(t.Context(), "asks", nil)
		if asks(s.Revision()) && (err != nil || res.Messages[0].Content.(mcp.TextContent).Text != "red" || res.Messages[0].Role != "assistant") {
			t.Errorf("asks = %+v, %v", res, err)
		}
		for p, err := range s.Prompts(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if p.Name != "greet" {
				continue
			}
			args := []mcp.PromptArgument{{Name: "name", Description: "who", Required: true}, {Name: "tone", Title: "Tone"}}
			if s.Revision() < mcp.V2025_06_18 {
				args[1].Title = ""
			}
			if d := cmp.Diff(args, p.Arguments); d != "" {
				t.Errorf("arguments (-want +got):\n%s", d)
			}
		}

		prompt, template := mcp.Feature{Kind: mcp.KindPrompt, Name: "greet"}, mcp.Feature{Kind: mcp.KindResourceTemplate, Name: "page://{lang}/{+path}"}
		tests := []struct {
			of             mcp.Feature
			arg, prefix    string
			others         map[string]string
			want           string
			total, visible int
		}{
			{of: prompt, arg: "name", prefix: "a", want: "[Ada Alan]", visible: 2},
			{of: prompt, arg: "name", prefix: "ad", want: "[Ada]", visible: 1},
			{of: prompt, arg: "name", prefix: "zz", want: "[]"},
			{of: prompt, arg: "tone", prefix: "", want: "[]"},
			{of: template, arg: "lang", prefix: "e", want: "[en es]", visible: 2},
			{of: template, arg: "path", prefix: "e", want: "[]"},
			{of: prompt, arg: "name", prefix: "many", total: 250, visible: 100},
		}
		for _, tt := range tests {
			got, err := s.Complete(t.Context(), tt.of, tt.arg, tt.prefix, tt.others)
			if err != nil {
				t.Errorf("complete %s %q: %v", tt.arg, tt.prefix, err)
				continue
			}
			if len(got.Values) != tt.visible || got.Total != tt.total || got.HasMore != (tt.total > 0) || tt.want != "" && fmt.Sprint(got.Values) != tt.want {
				t.Errorf("complete %s %q = %+v", tt.arg, tt.prefix, got)
			}
		}
		// T-70, COMP-26-003: the other arguments are newer than 2025-03-26.
		got, err := s.Complete(t.Context(), prompt, "name", "others", map[string]string{"tone": "dry"})
		want := "[map[tone:dry]]"
		if s.Revision() < mcp.V2025_06_18 {
			want = "[map[]]"
		}
		if err != nil || fmt.Sprint(got.Values) != want {
			t.Errorf("others = %+v, %v, want %s", got, err, want)
		}
		for _, of := range []mcp.Feature{{Kind: mcp.KindPrompt, Name: "none"}, {Kind: mcp.KindResourceTemplate, Name: "none"}} {
			if _, err := s.Complete(t.Context(), of, "x", "", nil); !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeInvalidParams}) {
				t.Errorf("complete %v = %v", of, err)
			}
		}
	})
}
