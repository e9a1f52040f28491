package middleware_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/middleware"
)

type question struct {
	Text string `json:"text" doc:"a text"`
	Tone string `json:"tone,omitempty"`
}

// newLibrary makes a server with prompts and resources to change.
func newLibrary() *mcp.Server {
	s := &mcp.Server{Name: "s", Version: "1"}
	for _, name := range []string{"ask", "drop", "tell"} {
		mcp.AddPrompt(s, mcp.Prompt{Name: name, Description: "inner " + name, Complete: map[string]mcp.CompleteFunc{"text": func(context.Context, string, map[string]string) ([]string, error) {
			return []string{"text of " + name}, nil
		}}}, func(_ context.Context, in question) (string, error) { return name + " " + in.Text, nil })
	}
	mcp.AddResource(s, mcp.Resource{URI: "kb://page", Name: "page", Description: "inner page"}, func(context.Context) (string, error) { return "the page", nil })
	mcp.AddResourceTemplate(s, mcp.ResourceTemplate{URITemplate: "kb://pages/{text}", Name: "pages"}, func(_ context.Context, in question) (string, error) { return in.Text, nil })
	return s
}

// Callers see, get and complete the changed prompts, on all revisions, at the server and at the client.
func TestPrompts(t *testing.T) {
	change := middleware.Prompts(map[string]middleware.PromptChange{
		"ask":  {Name: "question", Title: "Question", Description: "Asks", Arguments: map[string]string{"text": "what to ask"}},
		"drop": {Hidden: true},
	})
	check := func(t *testing.T, s *mcp.Session) {
		var lines []string
		for p, err := range s.Prompts(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			line := p.Name + "|" + p.Description
			for _, a := range p.Arguments {
				line += fmt.Sprintf("|%s: %s", a.Name, a.Description)
			}
			lines = append(lines, line)
		}
		want := "question|Asks|text: what to ask|tone: \ntell|inner tell|text: a text|tone: "
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("prompts\n%s\nwant\n%s", got, want)
		}
		for _, tt := range []struct{ name, get, complete string }{
			{"question", "ask tea", "text of ask"},
			{"tell", "tell tea", "text of tell"},
			{"ask", `no prompt \"ask\"; see prompts/list`, `no prompt \"ask\"; see prompts/list`},
			{"drop", `no prompt \"drop\"; see prompts/list`, `no prompt \"drop\"; see prompts/list`},
		} {
			got := ""
			if res, err := s.GetPrompt(t.Context(), tt.name, map[string]string{"text": "tea"}); err != nil {
				got = err.Error()
			} else {
				got = fmt.Sprint(res.Messages[0].Content)
			}
			if !strings.Contains(got, tt.get) {
				t.Errorf("prompts/get %s = %s, want %s", tt.name, got, tt.get)
			}
			if res, err := s.Complete(t.Context(), mcp.Feature{Kind: mcp.KindPrompt, Name: tt.name}, "text", "", nil); err != nil {
				got = err.Error()
			} else {
				got = fmt.Sprint(res.Values)
			}
			if !strings.Contains(got, tt.complete) {
				t.Errorf("completion of %s = %s, want %s", tt.name, got, tt.complete)
			}
		}
		if _, err := s.GetPrompt(t.Context(), "question", nil); err == nil || strings.Contains(err.Error(), `"ask`) {
			t.Errorf("question without arguments: %v", err)
		}
	}
	t.Run("server", func(t *testing.T) {
		mcptest.Every(t, func() *mcp.Server {
			s := newLibrary()
			s.Use(change)
			return s
		}, newClient, check)
	})
	t.Run("client", func(t *testing.T) {
		mcptest.Every(t, newLibrary, func() *mcp.Client {
			c := newClient()
			c.Use(change)
			return c
		}, check)
	})
}

// Resources and templates have other texts under the same URIs.
func TestResources(t *testing.T) {
	mcptest.Every(t, func() *mcp.Server {
		s := newLibrary()
		s.Use(middleware.Resources(map[string]middleware.ResourceChange{
			"kb://page": {Title: "Page", Description: "The page"}, "kb://pages/{text}": {Name: "articles", Description: "All pages"},
		}))
		return s
	}, newClient, func(t *testing.T, s *mcp.Session) {
		for r, err := range s.Resources(t.Context()) {
			if err != nil || r.URI != "kb://page" || r.Name != "page" || r.Description != "The page" {
				t.Errorf("%+v, %v", r, err)
			}
		}
		for r, err := range s.ResourceTemplates(t.Context()) {
			if err != nil || r.URITemplate != "kb://pages/{text}" || r.Name != "articles" || r.Description != "All pages" {
				t.Errorf("%+v, %v", r, err)
			}
		}
		for uri, want := range map[string]string{"kb://page": "the page", "kb://pages/tea": "tea"} {
			if res, err := s.ReadResource(t.Context(), uri); err != nil || res.Contents[0].Text != want {
				t.Errorf("%s: %+v, %v", uri, res, err)
			}
		}
	})
}

// Changes of what the lists do not have are reported.
func TestPromptsMisspelled(t *testing.T) {
	var out bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(was)
	srv := newLibrary()
	srv.Use(middleware.Prompts(map[string]middleware.PromptChange{"aks": {Name: "question"}, "tell": {Arguments: map[string]string{"txet": "x"}}}),
		middleware.Resources(map[string]middleware.ResourceChange{"kb://pgae": {Title: "x"}, "kb://pages/{txet}": {Title: "x"}}))
	s := mcptest.Connect(t, srv, newClient(), mcp.V2025_11_25)
	for range 2 {
		for _, method := range []string{"prompts/list", "resources/list", "resources/templates/list"} {
			if _, err := s.Raw(t.Context(), method, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := out.String()
	for _, want := range []string{"prompt=aks", "prompt=tell argument=txet", `"resource"=kb://pgae`, "kb://pages/{txet}"} {
		if !strings.Contains(got, strings.ReplaceAll(want, `"`, "")) {
			t.Errorf("nothing about %s in\n%s", want, got)
		}
	}
	if strings.Count(got, "\n") != 4 {
		t.Errorf("logged\n%s", got)
	}
	defer func() {
		if v := fmt.Sprint(recover()); !strings.HasPrefix(v, `middleware: Prompts: the prompts "a" and "b" are both named "b"`) {
			t.Errorf("panic %s", v)
		}
	}()
	middleware.Prompts(map[string]middleware.PromptChange{"a": {Name: "b"}, "b": {}})
}
