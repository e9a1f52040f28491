package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func addTools(s *mcp.Server, from, to int) {
	for i := from; i < to; i++ {
		mcp.AddTool(s, mcp.Tool{Name: fmt.Sprintf("t%03d", i)}, func(context.Context, struct{}) (string, error) { return "", nil })
	}
}

func toolNames(t testing.TB, s *mcp.Session) []string {
	t.Helper()
	var names []string
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// PAGE-26: pages are invisible, whole and in the order of registration (TOOL-26-006,
// PROM-26-010).
func TestPagesEverywhere(t *testing.T) {
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1", Limits: mcp.Limits{PageSize: 7}}
		addTools(s, 0, 50)
		for i := range 20 {
			mcp.AddPrompt(s, mcp.Prompt{Name: fmt.Sprintf("p%02d", i)}, func(context.Context, struct{}) (string, error) { return "", nil })
		}
		return s
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		names := toolNames(t, s)
		if len(names) != 50 || !slices.IsSorted(names) {
			t.Errorf("%d tools: %v", len(names), names)
		}
		var prompts []string
		for p, err := range s.Prompts(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			prompts = append(prompts, p.Name)
		}
		if len(prompts) != 20 || !slices.IsSorted(prompts) {
			t.Errorf("%d prompts: %v", len(prompts), prompts)
		}
		n := 0
		for range s.Tools(t.Context()) {
			if n++; n == 10 {
				break // an iteration can be left
			}
		}
	})
}

// Tools that come and go while somebody is paging move no other.
func TestPagingWhileChanging(t *testing.T) {
	s := &mcp.Server{Name: "s", Version: "1", Limits: mcp.Limits{PageSize: 10}}
	addTools(s, 0, 30)
	session := mcptest.Connect(t, s, nothing(), mcp.V2026_07_28)
	var names []string
	for tool, err := range session.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
		switch len(names) {
		case 5: // on the page already fetched
			s.Remove(mcp.Feature{Kind: mcp.KindTool, Name: "t002"}, mcp.Feature{Kind: mcp.KindTool, Name: "t009"}, mcp.Feature{Kind: mcp.KindTool, Name: "t025"})
			addTools(s, 30, 40)
			addTools(s, 12, 13) // replaced in its place
		}
	}
	want := 39 // t025 was gone before its page came
	if len(names) != want || !slices.IsSorted(names) || slices.Contains(names, "t025") {
		t.Errorf("%d tools, want %d: %v", len(names), want, names)
	}
}

// PAGE-26: a cursor that is not ours is refused; one that is old still works.
func TestCursors(t *testing.T) {
	s := &mcp.Server{Name: "s", Version: "1", Limits: mcp.Limits{PageSize: 2}}
	addTools(s, 0, 5)
	session := mcptest.Connect(t, s, nothing(), mcp.V2025_11_25)
	list := func(cursor any) (names []string, next string, err error) {
		params := map[string]any{}
		if cursor != nil {
			params["cursor"] = cursor
		}
		raw, err := session.Raw(t.Context(), "tools/list", params)
		if err != nil {
			return nil, "", err
		}
		var l mcp.List[mcp.Tool]
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Fatal(err)
		}
		for _, tool := range l.Items {
			names = append(names, tool.Name)
		}
		return names, l.NextCursor, nil
	}
	_, next, err := list(nil)
	if err != nil || next == "" {
		t.Fatalf("first page: %q, %v", next, err)
	}
	for i := range 5 {
		s.Remove(mcp.Feature{Kind: mcp.KindTool, Name: fmt.Sprintf("t%03d", i)})
	}
	addTools(s, 5, 6)
	if names, next, err := list(next); err != nil || next != "" || fmt.Sprint(names) != "[t005]" {
		t.Errorf("an old cursor = %v, %q, %v", names, next, err)
	}
	foreign := []any{"", "abc", "!!", base64.RawURLEncoding.EncodeToString([]byte("p2.5")), base64.RawURLEncoding.EncodeToString([]byte("p1.-1")), strings.Repeat("A", 5000)}
	for _, c := range foreign {
		if _, _, err := list(c); !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeInvalidParams}) {
			t.Errorf("cursor %.20q = %v, want %d", c, err, jsonrpc.CodeInvalidParams)
		}
	}
}

// A list of a kind that a server never had is a method it does not have (PROM-26-011).
func TestListsOfNothing(t *testing.T) {
	mcptest.Every(t, func() *mcp.Server { return &mcp.Server{Name: "empty", Version: "1"} }, nothing, func(t *testing.T, s *mcp.Session) {
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			if _, err := s.Raw(t.Context(), method, nil); !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeMethodNotFound}) {
				t.Errorf("%s = %v", method, err)
			}
		}
		if caps := s.Server().Capabilities; caps.Has("tools") || caps.Has("prompts") || caps.Has("resources") {
			t.Errorf("capabilities %s", caps)
		}
	})
}

// Visible filters lists and calls alike, and completion: what it hides is refused as if it
// was not there (TOOL-26-029, RES-26-015, -017, COMP-26-010, -011).
func TestVisibleEverywhere(t *testing.T) {
	newServer := func() *mcp.Server {
		s := library()
		addTools(s, 0, 5)
		s.Limits.PageSize = 2
		s.Visible = func(ctx context.Context, f mcp.Feature) bool {
			if mcp.CallFrom(ctx) == nil {
				return false
			}
			return !strings.Contains(f.Name, "1") && f.Name != "greet" && f.Name != "lib:text" && !strings.HasPrefix(f.Name, "page:")
		}
		return s
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		if got := fmt.Sprint(toolNames(t, s)); got != "[t000 t002 t003 t004]" {
			t.Errorf("tools %s", got)
		}
		if _, err := s.CallTool(t.Context(), "t001", nil); !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeInvalidParams}) {
			t.Errorf("a call of a hidden tool = %v", err)
		}
		if _, err := s.GetPrompt(t.Context(), "greet", map[string]string{"name": "x"}); !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeInvalidParams}) {
			t.Errorf("a hidden prompt = %v", err)
		}
		for _, uri := range []string{"lib:text", "page://de/x"} {
			if _, err := s.ReadResource(t.Context(), uri); err == nil {
				t.Errorf("a hidden resource %s can be read", uri)
			}
		}
		for hidden, missing := range map[mcp.Feature]mcp.Feature{
			{Kind: mcp.KindPrompt, Name: "greet"}:                           {Kind: mcp.KindPrompt, Name: "none!"},
			{Kind: mcp.KindResourceTemplate, Name: "page://{lang}/{+path}"}: {Kind: mcp.KindResourceTemplate, Name: "none!"},
			{Kind: mcp.KindResource, Name: "lib:text"}:                      {Kind: mcp.KindResource, Name: "none!"},
		} {
			_, err := s.Complete(t.Context(), hidden, "name", "", nil)
			_, unknown := s.Complete(t.Context(), missing, "name", "", nil)
			if err == nil || unknown == nil || strings.ReplaceAll(err.Error(), hidden.Name, "none!") != unknown.Error() {
				t.Errorf("completing what is hidden = %v, and what does not exist = %v", err, unknown)
			}
		}
	})
}

// Bad lists of a server: one entry that makes no sense is logged, and costs nobody the
// others. A cursor that comes again ends the iteration with an error.
func TestMalformedLists(t *testing.T) {
	var log strings.Builder
	fake := func(result string) *mcp.Session {
		s := &mcp.Server{Name: "fake", Version: "1", Handler: mcp.HandlerFunc(func(_ context.Context, r *mcp.Request) (mcp.Result, error) {
			if strings.HasSuffix(r.Method, "/list") {
				return mcp.RawResult(result), nil
			}
			return &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "fake", Version: "1"}, Revisions: mcp.Revisions()}, nil
		})}
		log.Reset()
		return unchecked(t, s, &mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2025_11_25}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	}
	check := func(t *testing.T, names []string, errs error, reasons ...string) {
		t.Helper()
		if fmt.Sprint(names) != "[a b]" || errs != nil {
			t.Errorf("names %v, error %v", names, errs)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != len(reasons) {
			t.Fatalf("%d lines of log, want %d:\n%s", len(lines), len(reasons), log.String())
		}
		for i, want := range reasons {
			if !strings.Contains(lines[i], want) {
				t.Errorf("log %q does not say %q", lines[i], want)
			}
		}
	}
	t.Run("a tool", func(t *testing.T) {
		names, err := gather(fake(`{"tools":[{"name":"a","inputSchema":{}},{"name":7},"x",{"title":"nameless"},null,{"name":"t","title":[]},{"name":"b","inputSchema":{}}]}`).Tools(t.Context()), func(t *mcp.Tool) string { return t.Name })
		check(t, names, err, "index=1", `index=2 err="want an object"`, "index=3", "index=4", "index=5")
	})
	t.Run("a prompt", func(t *testing.T) {
		names, err := gather(fake(`{"prompts":[{"name":"a"},{"name":"p","arguments":{}},{"name":"b"}]}`).Prompts(t.Context()), func(p *mcp.Prompt) string { return p.Name })
		check(t, names, err, "method=prompts/list index=1")
	})
	t.Run("a resource", func(t *testing.T) {
		names, err := gather(fake(`{"resources":[{"uri":"a"},{"name":"no uri"},{"uri":"b","size":4}]}`).Resources(t.Context()), func(r *mcp.Resource) string { return r.URI })
		check(t, names, err, "method=resources/list index=1")
	})
	t.Run("a template", func(t *testing.T) {
		names, err := gather(fake(`{"resourceTemplates":[{"uriTemplate":"a"},{"uriTemplate":"t","icons":7},{"uriTemplate":"b"}]}`).ResourceTemplates(t.Context()), func(r *mcp.ResourceTemplate) string { return r.URITemplate })
		check(t, names, err, "method=resources/templates/list index=1")
	})
	t.Run("pages without end", func(t *testing.T) {
		n, failed := 0, error(nil)
		for _, err := range fake(`{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"x"}`).Tools(t.Context()) {
			if n++; n > 10 {
				t.Fatal("the iteration has no end")
			}
			failed = err
		}
		if failed == nil || !strings.Contains(failed.Error(), "no end") {
			t.Errorf("error %v", failed)
		}
	})
	t.Run("ever new pages", func(t *testing.T) {
		n := 0
		s := unchecked(t, (&counting{answer: func(*mcp.Request, int) (mcp.Result, error) {
			n++
			return mcp.RawResult(fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n)), nil
		}}).server(), nothing())
		_, err := gather(s.Tools(t.Context()), func(t *mcp.Tool) string { return t.Name })
		if err == nil || !strings.Contains(err.Error(), "more than 10000 pages") || n > 10_001 {
			t.Errorf("error %v after %d pages", err, n)
		}
	})
	t.Run("no list", func(t *testing.T) {
		for _, result := range []string{`{}`, `{"tools":null}`, `{"tools":{}}`} {
			for _, err := range fake(result).Tools(t.Context()) {
				if err == nil {
					t.Errorf("%s is a list", result)
				}
			}
		}
	})
}

// gather reads a list to its end or first error.
func gather[T any](seq iter.Seq2[T, error], name func(T) string) (names []string, err error) {
	for item, err := range seq {
		if err != nil {
			return names, err
		}
		names = append(names, name(item))
	}
	return names, nil
}

// Members of a listed feature that this package does not know survive decoding, and offering the
// feature to others.
func TestUnknownMembersOfFeatures(t *testing.T) {
	const meta = `"_meta":{"com.example/k":[1,{"a":null}]}`
	lists := map[string]string{
		"tools/list":               `{"tools":[{"name":"a","inputSchema":{"type":"object"},` + meta + `,"x-price":{"eur":1.50},"zero":null}]}`,
		"prompts/list":             `{"prompts":[{"name":"a",` + meta + `,"x-price":{"eur":1.50}}]}`,
		"resources/list":           `{"resources":[{"uri":"a:","name":"a",` + meta + `,"type":"file"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"a:{x}","name":"a",` + meta + `,"x":"y"}]}`,
	}
	newServer := func() *mcp.Server {
		return &mcp.Server{Name: "s", Version: "1", Handler: mcp.HandlerFunc(func(_ context.Context, r *mcp.Request) (mcp.Result, error) {
			if l := lists[r.Method]; l != "" {
				return mcp.RawResult(l), nil
			}
			return &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "s", Version: "1"}, Revisions: mcp.Revisions()}, nil
		})}
	}
	back := unchecked(t, newServer(), &mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2026_07_28}})

	// By way of Go types, into another server.
	typed := &mcp.Server{Name: "typed", Version: "1"}
	for item, err := range back.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if string(item.Extra["x-price"]) != `{"eur":1.50}` {
			t.Errorf("Extra = %s", item.Extra)
		}
		typed.HandleTool(*item, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return nil, nil })
	}
	raw, err := unchecked(t, typed, &mcp.Client{Name: "c"}).Raw(t.Context(), "tools/list", nil)
	if err != nil || !strings.Contains(string(raw), `"_meta":{"com.example/k":[1,{"a":null}]},"x-price":{"eur":1.50},"zero":null}`) {
		t.Errorf("typed: %s, %v", raw, err)
	}
	// As bytes, through a Session that is served.
	front := unchecked(t, &mcp.Server{Name: "front", Version: "1", Handler: back}, &mcp.Client{Name: "c"})
	for method, list := range lists {
		raw, err := front.Raw(t.Context(), method, nil)
		if err != nil || !strings.HasPrefix(string(raw), strings.TrimSuffix(list, "}")) {
			t.Errorf("forwarded %s = %s, %v", method, raw, err)
		}
	}
	for _, encoded := range []struct {
		list string
		into any
	}{
		{lists["tools/list"], new(mcp.List[mcp.Tool])}, {lists["prompts/list"], new(mcp.List[mcp.Prompt])},
		{lists["resources/list"], new(mcp.List[mcp.Resource])}, {lists["resources/templates/list"], new(mcp.List[mcp.ResourceTemplate])},
	} {
		if err := json.Unmarshal([]byte(encoded.list), encoded.into); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(encoded.into); err != nil || string(again) != encoded.list {
			t.Errorf("%s becomes %s, %v", encoded.list, again, err)
		}
	}
}
