package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/middleware"
)

// newFinder makes a server with tools to change.
func newFinder() *mcp.Server {
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "find", Title: "Find", Description: "Find all"}, func(_ context.Context, in struct {
		Text  string `json:"text"`
		Limit int    `json:"limit"`
		Where string `json:"where,omitempty"`
	}) (string, error) {
		return fmt.Sprint(in.Text, " ", in.Limit, " ", in.Where), nil
	})
	for _, name := range []string{"drop", "search", "say"} {
		mcp.AddTool(s, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return name, nil })
	}
	return s
}

// Callers see and call the changed tools, on all revisions, at the server and at the client.
func TestTools(t *testing.T) {
	change := middleware.Tools(map[string]middleware.ToolChange{
		"find": {Name: "search", Title: "Search", Description: "Search here", Arguments: map[string]any{"limit": 5, "where": "here"}},
		"drop": {Hidden: true},
		"say":  {Description: "Say it"},
		"none": {Name: "nothing"}, // the server does not have it
	})
	check := func(t *testing.T, s *mcp.Session) {
		var lines []string
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s|%s|%s", tool.Name, tool.Description, tool.InputSchema))
		}
		want := `search|Search here|{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}
say|Say it|{"type":"object","properties":{},"additionalProperties":false}`
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("tools\n%s\nwant\n%s", got, want)
		}
		for _, tt := range []struct{ tool, args, want string }{
			{"search", `{"text":"tea"}`, "tea 5 here"},
			{"search", `{"text":"tea","limit":50}`, `unknown property "limit"`},
			{"search", `{"text":"tea","where":null}`, `unknown property "where"`},
			{"search", `{}`, `missing "text"`},
			{"say", `{}`, "say"},
			{"find", `{"text":"tea","limit":50}`, `"no tool \"find\"; see tools/list" (code -32602)`},
			{"drop", `{}`, `"no tool \"drop\"; see tools/list" (code -32602)`},
			{"other", `{}`, `"no tool \"other\"; see tools/list" (code -32602)`},
		} {
			res, err := s.CallTool(t.Context(), tt.tool, json.RawMessage(tt.args))
			got := fmt.Sprint(err)
			if err == nil {
				got = res.Text()
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s %s = %s, want %s", tt.tool, tt.args, got, tt.want)
			}
		}
		if res, err := s.CallTool(t.Context(), "search", nil); err != nil || !res.IsError {
			t.Errorf("search without arguments = %v, %v", res, err)
		}
	}
	t.Run("server", func(t *testing.T) {
		mcptest.Every(t, func() *mcp.Server {
			s := newFinder()
			s.Use(change)
			return s
		}, newClient, check)
	})
	t.Run("client", func(t *testing.T) {
		mcptest.Every(t, newFinder, func() *mcp.Client {
			c := newClient()
			c.Use(change)
			return c
		}, check)
	})
}

// A tool is listed exactly if it can be called, also if several tools trade names.
func TestToolsTradeNames(t *testing.T) {
	type changes = map[string]middleware.ToolChange
	for _, tt := range []struct {
		changes changes
		want    map[string]string // the tool of the server, by the name that callers see
	}{
		{changes{"drop": {Name: "say"}, "say": {Name: "drop"}}, map[string]string{"say": "drop", "drop": "say", "search": "search"}},
		{changes{"drop": {Name: "say"}, "say": {Name: "search"}, "search": {Name: "drop"}}, map[string]string{"say": "drop", "search": "say", "drop": "search"}},
		{changes{"drop": {Name: "say"}, "say": {Name: "tell"}}, map[string]string{"say": "drop", "tell": "say", "search": "search"}},
		{changes{"drop": {Name: "say"}, "say": {Hidden: true}}, map[string]string{"say": "drop", "search": "search"}},
		{changes{"drop": {Name: "say"}}, map[string]string{"say": "drop", "search": "search"}},
	} {
		tt.changes["find"] = middleware.ToolChange{Hidden: true}
		srv := newFinder()
		srv.Use(middleware.Tools(tt.changes))
		s := mcptest.Connect(t, srv, newClient(), mcp.V2026_07_28)
		var names []string
		got := map[string]string{}
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		for _, name := range []string{"drop", "say", "search", "tell", "find"} {
			switch res, err := s.CallTool(t.Context(), name, nil); {
			case err == nil && !slices.Contains(names, name):
				t.Errorf("%v: %s is not listed, but can be called", tt.changes, name)
			case err == nil:
				got[name] = res.Text()
			}
		}
		if !maps.Equal(got, tt.want) || len(names) != len(got) {
			t.Errorf("%v: tools %v listed as %q, want %v", tt.changes, got, names, tt.want)
		}
	}
}

// Changes that contradict each other are a mistake of the program.
func TestToolsNonsense(t *testing.T) {
	for want, changes := range map[string]map[string]middleware.ToolChange{
		`middleware: Tools: the tools "a" and "b" are both named "c"`:                                {"a": {Name: "c"}, "b": {Name: "c"}},
		`middleware: Tools: the tools "a" and "b" are both named "b"`:                                {"a": {Name: "b"}, "b": {Title: "B"}},
		`middleware: Tools: the tool "a" cannot be named "x y": the name has the character ' '; use`: {"a": {Name: "x y"}},
		`middleware: Tools: the tool "a" cannot be named "xxx`:                                       {"a": {Name: strings.Repeat("x", 129)}},
		`middleware: Tools: the tool "a": argument "f": `:                                            {"a": {Arguments: map[string]any{"f": func() {}}}},
	} {
		func() {
			defer func() {
				if v := recover(); !strings.HasPrefix(fmt.Sprint(v), want) {
					t.Errorf("panic %v, want %s", v, want)
				}
			}()
			middleware.Tools(changes)
		}()
	}
	middleware.Tools(map[string]middleware.ToolChange{"a": {Name: "b"}, "b": {Name: "a"}, "c": {Hidden: true, Name: "a"}})
}

// A name is refused exactly if mcp.AddTool refuses it.
func TestNames(t *testing.T) {
	for _, name := range []string{"a", "A-z_0.9/b", "ä", "a b", "a:b", strings.Repeat("x", 128), strings.Repeat("x", 129), "a\n", "a*"} {
		err := new(mcp.Server).HandleTool(mcp.Tool{Name: name}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return nil, nil })
		refused := func() (refused bool) {
			defer func() { refused = recover() != nil }()
			middleware.Tools(map[string]middleware.ToolChange{"other": {Name: name}})
			return false
		}()
		if refused != (err != nil) {
			t.Errorf("%q is refused: %t; AddTool: %v", name, refused, err)
		}
	}
}

// An error about a renamed tool has the name that callers use, also if it is a refusal that another
// middleware has put into words of its own.
func TestToolsErrors(t *testing.T) {
	for _, inner := range []error{
		mcp.Errorf(-32602, "no tool %q; see tools/list", "find"),
		mcp.Errorf(-32600, "tool %q is refused", "find"),
		fmt.Errorf("wrapped: %w", mcp.Errorf(-32603, "more calls of %q", "find")),
	} {
		h := middleware.Tools(map[string]middleware.ToolChange{"find": {Name: "search"}})(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, inner }))
		_, err := h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"search"}`)})
		var rpc *mcp.Error
		if !errors.As(err, &rpc) || strings.Contains(rpc.Message, "find") || !strings.Contains(rpc.Message, `"search"`) || strings.Contains(err.Error(), "find") || !errors.Is(err, inner) {
			t.Errorf("%v becomes %v", inner, err)
		}
	}
}

// A tool whose name another one has got is reported, once, and callers do not have it.
func TestToolsTaken(t *testing.T) {
	var out bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(was)
	srv := newFinder()
	srv.Use(middleware.Tools(map[string]middleware.ToolChange{"drop": {Name: "say"}}))
	s := mcptest.Connect(t, srv, newClient(), mcp.V2026_07_28)
	for range 2 {
		if _, err := s.Raw(t.Context(), "tools/list", nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "tool=say renamed=drop") {
		t.Errorf("logged\n%s", got)
	}
	if res, err := s.CallTool(t.Context(), "say", nil); err != nil || res.Text() != "drop" {
		t.Errorf("say: %v, %v", res, err)
	}
}

// A change of a missing tool or argument is reported, once, and an error has the new name of a tool.
func TestToolsMisspelled(t *testing.T) {
	var out bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(was)
	srv := newFinder()
	srv.Use(middleware.Tools(map[string]middleware.ToolChange{"drpo": {Hidden: true}, "ghost": {Name: "spirit"}, "say": {Arguments: map[string]any{"nosuch": 1}}}))
	s := mcptest.Connect(t, srv, newClient(), mcp.V2025_11_25)
	for range 2 {
		if _, err := s.Raw(t.Context(), "tools/list", nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, "tool=say argument=nosuch") || !strings.Contains(got, "tool=drpo") || !strings.Contains(got, "tool=ghost") {
		t.Errorf("logged\n%s", got)
	}
	if _, err := s.CallTool(t.Context(), "spirit", nil); err == nil || strings.Contains(err.Error(), "ghost") || !strings.Contains(err.Error(), `no tool \"spirit\"`) {
		t.Errorf("spirit: %v", err)
	}
}

// An argument that callers cannot set is not required by any part of the schema.
func TestToolsParts(t *testing.T) {
	srv := &mcp.Server{Name: "s"}
	err := srv.HandleTool(mcp.Tool{Name: "a", InputSchema: json.RawMessage(`{"type":"object","properties":{"x":{},"y":{}},"allOf":[{"required":["x"]}],"anyOf":[{"required":["x","y"]},true],"if":{"required":["x"]},"then":{"required":["y"]}}`)},
		func(_ context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
			return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(string(args))}}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	srv.Use(middleware.Tools(map[string]middleware.ToolChange{"a": {Arguments: map[string]any{"x": 1}}}))
	s := mcptest.Connect(t, srv, newClient(), mcp.V2026_07_28)
	for tool, err := range s.Tools(t.Context()) {
		const want = `{"type":"object","properties":{"y":{}},"allOf":[{}],"anyOf":[{"required":["y"]},true],"if":{},"then":{"required":["y"]}}`
		if err != nil || string(tool.InputSchema) != want {
			t.Errorf("%s, %v, want %s", tool.InputSchema, err, want)
		}
	}
	if res, err := s.CallTool(t.Context(), "a", map[string]any{"y": 2}); err != nil || res.IsError {
		t.Errorf("%v, %v", res, err)
	}
}

// A fixed argument may be one that travels in a header: a caller of a proxy over HTTP, which knows the
// tool without that argument, can call it before and after it has listed the tools.
func TestToolsWithHeaders(t *testing.T) {
	srv := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "find"}, func(_ context.Context, in struct {
		Text  string `json:"text" header:"Text"`
		Limit int    `json:"limit" header:"Limit"`
	}) (string, error) {
		return fmt.Sprint(in.Text, " ", in.Limit), nil
	})
	web := httptest.NewServer(srv)
	defer web.Close()
	change := middleware.Tools(map[string]middleware.ToolChange{"find": {Name: "search", Arguments: map[string]any{"limit": 5}}})
	s := dialThrough(t, web.URL, "proxy over HTTP", newClient(), change)
	for range 2 {
		if res, err := s.CallTool(t.Context(), "search", map[string]any{"text": "tea"}); err != nil || res.Text() != "tea 5" {
			t.Errorf("CallTool = %v, %v", res, err)
		}
		for _, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
