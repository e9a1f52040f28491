package view_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/view"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
)

type message struct {
	Text string `json:"text" doc:"what to look for"`
}

// shop is a gateway with the servers kb and jira, which have the same features.
func shop(t testing.TB) *gateway.Gateway {
	t.Helper()
	g := &gateway.Gateway{Name: "all"}
	for _, name := range []string{"kb", "jira"} {
		srv := &mcp.Server{Name: name, Instructions: "secrets of " + name}
		for _, tool := range []string{"search", "delete"} {
			mcp.AddTool(srv, mcp.Tool{Name: tool, Description: tool + " things of " + name}, func(ctx context.Context, in message) (string, error) {
				if in.Text == "who?" {
					yes, err := mcp.Confirm(ctx, "sure?")
					return fmt.Sprint(yes), err
				}
				return name + " " + tool + " " + in.Text, nil
			})
		}
		mcp.AddPrompt(srv, mcp.Prompt{Name: "ask", Complete: map[string]mcp.CompleteFunc{"text": func(context.Context, string, map[string]string) ([]string, error) { return []string{"why"}, nil }}},
			func(context.Context, message) (string, error) { return "ask " + name, nil })
		mcp.AddResource(srv, mcp.Resource{URI: name + "://page", Name: "page"}, func(context.Context) (string, error) { return "page of " + name, nil })
		mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{URITemplate: name + "://pages/{text}", Name: "pages"}, func(_ context.Context, in message) (string, error) { return name + " " + in.Text, nil })
		if err := g.Set(name, srv); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// open opens a session with a view of shop.
func open(t testing.TB, v *view.View) *mcp.Session {
	t.Helper()
	s, err := (&mcp.Client{OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
	}}).Open(t.Context(), v.Middleware()(shop(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// names returns what a session lists.
func names(t testing.TB, s *mcp.Session) string {
	t.Helper()
	var all []string
	add := func(name string, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	for tool, err := range s.Tools(t.Context()) {
		add(tool.Name, err)
	}
	for p, err := range s.Prompts(t.Context()) {
		add(p.Name, err)
	}
	for r, err := range s.Resources(t.Context()) {
		add(r.URI, err)
	}
	for r, err := range s.ResourceTemplates(t.Context()) {
		add(r.URITemplate, err)
	}
	return strings.Join(all, " ")
}

func TestLists(t *testing.T) {
	for want, v := range map[string]*view.View{
		"jira_search jira_delete kb_search kb_delete jira_ask kb_ask jira://page kb://page jira://pages/{text} kb://pages/{text}": {},
		"jira_search kb_search kb_delete":    {Tools: []string{"jira_search", "kb_*"}},
		"kb_ask":                             {Prompts: []string{"kb*"}},
		"kb://page kb://pages/{text}":        {Resources: []string{"kb:*"}},
		"":                                   {Tools: []string{}},
		"find":                               {Tools: []string{"jira_search"}, Changes: map[string]middleware.ToolChange{"jira_search": {Name: "find"}}},
		"kb_search ":                         {Tools: []string{"kb_search"}, Prompts: []string{}, Resources: []string{}},
		"ask kb://page":                      {Prompts: []string{"kb_ask"}, Resources: []string{"kb://page"}, PromptChanges: map[string]middleware.PromptChange{"kb_ask": {Name: "ask"}}, ResourceChanges: map[string]middleware.ResourceChange{"kb://page": {Title: "x"}}},
		"find_tools describe_tool call_tool": {Tools: []string{"*"}, Search: new(view.Search)},
		"find_tools describe_tool call_tool kb_ask": {Tools: []string{"*"}, Prompts: []string{"kb_ask"}, Search: new(view.Search)},
	} {
		v.Name = "small"
		if got := names(t, open(t, v)); got != strings.TrimSpace(want) {
			t.Errorf("%+v has %s, want %s", v, got, want)
		}
	}
}

// Names outside of a view are answered like names that do not exist, with every method, and with
// search too.
func TestOutsideIsAbsent(t *testing.T) {
	for name, v := range map[string]*view.View{
		"listed": {Name: "small", Tools: []string{"kb_search"}, Prompts: []string{"kb_ask"}, Resources: []string{"kb:*"}},
		"search": {Name: "small", Tools: []string{"kb_search"}, Prompts: []string{"kb_ask"}, Resources: []string{"kb:*"}, Search: new(view.Search)},
		"renamed": {Name: "small", Tools: []string{"jira_delete"}, Prompts: []string{"jira_ask"}, Resources: []string{"kb:*"},
			Changes:         map[string]middleware.ToolChange{"jira_delete": {Name: "delete"}},
			PromptChanges:   map[string]middleware.PromptChange{"jira_ask": {Name: "question"}},
			ResourceChanges: map[string]middleware.ResourceChange{"kb://page": {Name: "start"}}},
		"hidden": {Name: "small",
			Changes:       map[string]middleware.ToolChange{"jira_delete": {Hidden: true}, "none_delete": {Hidden: true}},
			PromptChanges: map[string]middleware.PromptChange{"jira_ask": {Hidden: true}, "none_ask": {Hidden: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, v)
			ctx := t.Context()
			said := func(_ any, err error) string {
				if err == nil {
					return "no error"
				}
				return err.Error()
			}
			ways := map[string]func(server string) string{
				"tools/call": func(server string) string { return said(s.CallTool(ctx, server+"_delete", message{"x"})) },
				"call_tool": func(server string) string {
					return said(s.CallTool(ctx, "call_tool", map[string]any{"name": server + "_delete", "arguments": message{"x"}}))
				},
				"describe_tool": func(server string) string {
					return said(s.CallTool(ctx, "describe_tool", map[string]any{"name": server + "_delete"}))
				},
				"prompts/get": func(server string) string { return said(s.GetPrompt(ctx, server+"_ask", nil)) },
				"completion of a prompt": func(server string) string {
					return said(s.Complete(ctx, mcp.Feature{Kind: mcp.KindPrompt, Name: server + "_ask"}, "text", "", nil))
				},
				"completion of a template": func(server string) string {
					return said(s.Complete(ctx, mcp.Feature{Kind: mcp.KindResourceTemplate, Name: server + "://pages/{text}"}, "text", "", nil))
				},
				"resources/read":         func(server string) string { return said(s.ReadResource(ctx, server+"://page")) },
				"resources/read, templ.": func(server string) string { return said(s.ReadResource(ctx, server+"://pages/x")) },
				"subscription": func(server string) string {
					for _, err := range s.Watch(ctx, server+"://page") {
						return said(nil, err)
					}
					return "the end"
				},
			}
			if name == "hidden" { // names of tools and prompts alone
				maps.DeleteFunc(ways, func(way string, _ func(string) string) bool {
					return strings.Contains(way, "resource") || strings.Contains(way, "template") || way == "subscription" || strings.HasSuffix(way, "_tool")
				})
			}
			for way, try := range ways {
				outside, absent := try("jira"), try("none")
				if strings.ReplaceAll(outside, "jira", "none") != absent || absent == "no error" {
					t.Errorf("%s: outside %q, absent %q", way, outside, absent)
				}
			}
			info := s.Server()
			if name != "hidden" && strings.Contains(info.Instructions, "secrets") {
				t.Errorf("instructions %q", info.Instructions)
			}
		})
	}
}

func TestFor(t *testing.T) {
	type key struct{}
	v := &view.View{Name: "leads", For: func(ctx context.Context) bool { return ctx.Value(key{}) != nil }}
	h := v.Middleware()(shop(t))
	for _, method := range []string{"server/discover", "tools/list", "ping"} {
		req := &mcp.Request{Method: method, Params: []byte("{}")}
		_, err := h.Handle(t.Context(), req)
		var rpc *mcp.Error
		if !errors.As(err, &rpc) || !strings.Contains(err.Error(), "leads") {
			t.Errorf("%s for a stranger: %v", method, err)
		}
		if method == "ping" {
			continue // a gateway has none
		}
		if _, err := h.Handle(context.WithValue(t.Context(), key{}, 1), req); err != nil {
			t.Errorf("%s for a lead: %v", method, err)
		}
	}
}

func TestInstructions(t *testing.T) {
	for want, v := range map[string]*view.View{
		"secrets of kb": {},
		"own":           {Tools: []string{"*"}, Instructions: "own"},
		"find_tools":    {Search: new(view.Search)},
	} {
		v.Name = "v"
		if got := open(t, v).Server().Instructions; !strings.Contains(got, want) {
			t.Errorf("%+v says %q, want %q", v, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	tools := func(changes map[string]middleware.ToolChange) *view.View {
		return &view.View{Name: "v", Tools: []string{"a", "b"}, Changes: changes}
	}
	for want, v := range map[string]*view.View{
		"needs a name": {},
		`the tool "a" cannot be named "b": the view has a tool of that name`:      tools(map[string]middleware.ToolChange{"a": {Name: "b"}}),
		`the prompt "a" cannot be named "b": the view has a prompt of that name`:  {Name: "v", Prompts: []string{"a", "b"}, PromptChanges: map[string]middleware.PromptChange{"a": {Name: "b"}}},
		`the prompts "a" and "b" are both named "c"`:                              {Name: "v", PromptChanges: map[string]middleware.PromptChange{"a": {Name: "c"}, "b": {Name: "c"}}},
		`the tool "a" cannot be named "call_tool": the search has a tool of that`: {Name: "v", Search: new(view.Search), Changes: map[string]middleware.ToolChange{"a": {Name: "call_tool"}}},
		"both named":   {Name: "v", Changes: map[string]middleware.ToolChange{"a": {Name: "c"}, "b": {Name: "c"}}},
		"-1 bytes":     {Name: "v", Search: &view.Search{Budget: -1}},
		"the name has": {Name: "v", Changes: map[string]middleware.ToolChange{"a": {Name: "no spaces"}}},
	} {
		err := v.Check()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "middleware") {
			t.Errorf("%+v: %v, want %q", v, err, want)
		}
	}
	for _, v := range []*view.View{
		tools(map[string]middleware.ToolChange{"a": {Name: "b"}, "b": {Name: "a"}}),
		tools(map[string]middleware.ToolChange{"a": {Name: "b"}, "b": {Hidden: true}}),
		tools(map[string]middleware.ToolChange{"a": {Name: "a"}}),
	} {
		if err := v.Check(); err != nil {
			t.Errorf("%+v: %v", v.Changes, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Middleware of a faulty view does not panic")
		}
	}()
	(&view.View{}).Middleware()
}

func TestSearch(t *testing.T) {
	s := open(t, &view.View{Name: "v", Tools: []string{"*_search"}, Search: new(view.Search)})
	ctx := t.Context()
	call := func(name string, args any) string {
		t.Helper()
		res, err := s.CallTool(ctx, name, args)
		if err != nil {
			return "error: " + err.Error()
		}
		return res.Text()
	}
	for _, c := range []struct {
		tool string
		args any
		want string
	}{
		{"find_tools", map[string]any{"query": "things of kb"}, "kb_search: search things of kb\n  arguments: text"},
		{"find_tools", map[string]any{"query": "delete"}, "No tool fits"},
		{"find_tools", map[string]any{"query": ""}, `"query" is needed`},
		{"find_tools", map[string]any{"query": 5}, "query"},
		{"find_tools", nil, `"query" is needed`},
		{"find_tools", map[string]any{"query": "things", "limit": 1}, "_search"},
		{"describe_tool", map[string]any{"name": "kb_search"}, `"what to look for"`},
		{"describe_tool", map[string]any{"name": "kb_Search"}, "error: "},
		{"call_tool", map[string]any{"name": "kb_search", "arguments": message{"x"}}, "kb search x"},
		{"call_tool", map[string]any{"name": "kb_search", "arguments": message{"who?"}}, "true"}, // it asks the caller
		{"call_tool", map[string]any{"name": "kb_search", "arguments": "x"}, "must be an object"},
		{"call_tool", map[string]any{"name": "kb_search"}, "text"}, // an argument is missing
		{"call_tool", map[string]any{"name": "find_tools", "arguments": map[string]any{"query": "x"}}, "error: "},
		{"call_tool", map[string]any{"name": " kb_search"}, "error: "},
		{"call_tool", map[string]any{"arguments": message{"x"}}, `"name" is needed`},
		{"kb_search", message{"direct"}, "kb search direct"},
	} {
		if got := call(c.tool, c.args); !strings.Contains(got, c.want) {
			t.Errorf("%s %v: %q, want %q", c.tool, c.args, got, c.want)
		}
	}
	if got := call("find_tools", map[string]any{"query": "things", "limit": 1}); strings.Count(got, "arguments:") != 1 {
		t.Errorf("limit 1: %q", got)
	}
}

// The three tools take less than 2 kB, however many they stand for.
func TestListIsSmall(t *testing.T) {
	h := (&view.View{Name: "v", Search: new(view.Search)}).Middleware()(shop(t))
	res, err := h.Handle(t.Context(), &mcp.Request{Method: "tools/list", Params: []byte("{}")})
	if err != nil || len(res.JSON()) > 2000 {
		t.Errorf("%d bytes, %v", len(res.JSON()), err)
	}
}

// A long result is cut, and its rest can be read in parts, by nobody else.
func TestRest(t *testing.T) {
	long := strings.Repeat("Zeile für Zeile\n", 4000)
	srv := &mcp.Server{Name: "long"}
	srv.HandleTool(mcp.Tool{Name: "text", InputSchema: []byte(`{"type":"object"}`)}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("short"), mcp.Text(long), mcp.ImageContent{MIMEType: "image/png", Data: []byte(long)}}}, nil
	})

	s, err := new(mcp.Client).Open(t.Context(), (&view.View{Name: "v", Search: &view.Search{Budget: 5000}}).Middleware()(srv))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(t.Context(), "call_tool", map[string]any{"name": "text"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(res.JSON()); n > 7000 {
		t.Errorf("a result of %d bytes", n)
	}
	var got strings.Builder
	links := 0
	for _, c := range res.Content[1:] {
		switch c := c.(type) {
		case mcp.TextContent:
			got.WriteString(c.Text)
		case mcp.ResourceLink:
			links++
			for uri := c.URI; uri != ""; {
				read, err := s.ReadResource(t.Context(), uri)
				if err != nil {
					t.Fatal(err)
				}
				if links == 2 {
					if string(read.Contents[0].Blob) != long || read.Contents[0].MIMEType != "image/png" {
						t.Errorf("the image has %d bytes of %s", len(read.Contents[0].Blob), read.Contents[0].MIMEType)
					}
					break
				}
				got.WriteString(read.Contents[0].Text)
				if uri = ""; len(read.Contents) > 1 {
					uri = read.Contents[1].URI
				}
			}
		}
	}
	if got.String() != long || links != 2 {
		t.Errorf("%d bytes of %d, %d links", got.Len(), len(long), links)
	}
	for _, uri := range []string{"patchbay-rest:x/0", "patchbay-rest:", "patchbay-rest:x/-1"} {
		if _, err := s.ReadResource(t.Context(), uri); err == nil || !strings.Contains(err.Error(), "call the tool again") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
