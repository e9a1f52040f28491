package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Cursors that a client makes up do not make the server keep pages.
func TestPagesKeptAreBounded(t *testing.T) {
	s := &Server{Name: "s", Limits: Limits{PageSize: 10}}
	for i := range 95 {
		AddTool(s, Tool{Name: fmt.Sprint("t", i)}, func(context.Context, struct{}) (string, error) { return "", nil })
	}
	for i := range uint64(1000) {
		params := json.RawMessage(`{"cursor":"` + cursor(i) + `"}`)
		if _, err := s.Handle(t.Context(), &Request{Method: "tools/list", Params: params}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.tools.snapshot().pages); n > 10 {
		t.Errorf("%d pages are kept of a list of 10", n)
	}
}

// BenchmarkListChanged lists 1,000 tools of 1 KiB after each change of one of them.
func BenchmarkListChanged(b *testing.B) {
	s := &Server{Name: "s"}
	form := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","description":"` + strings.Repeat("x", 880) + `"}}}`)
	add := func(i int) {
		t := Tool{Name: fmt.Sprintf("tool%04d", i), InputSchema: form}
		if err := s.HandleTool(t, func(context.Context, json.RawMessage) (*ToolResult, error) { return nil, nil }); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 1000 {
		add(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		add(500)
		req := &Request{Method: "tools/list"}
		for {
			res, err := s.Handle(b.Context(), req)
			if err != nil {
				b.Fatal(err)
			}
			next := res.(*List[Tool]).NextCursor
			if next == "" {
				break
			}
			req = &Request{Method: "tools/list", Params: json.RawMessage(`{"cursor":"` + next + `"}`)}
		}
	}
}

// A page put together of its entries is what encoding the list makes, before and after a
// change.
func TestPagesAreListsEncoded(t *testing.T) {
	s := &Server{Name: "s", Limits: Limits{PageSize: 2}}
	tool := func(i int, text string) {
		AddTool(s, Tool{Name: fmt.Sprint("t", i), Description: text, Extra: map[string]json.RawMessage{"x": json.RawMessage("[1,\n2]")}},
			func(context.Context, struct{}) (string, error) { return "", nil })
	}
	for i := range 5 {
		tool(i, "first")
		AddPrompt(s, Prompt{Name: fmt.Sprint("p", i)}, func(context.Context, struct{}) (string, error) { return "", nil })
		AddResource(s, Resource{URI: fmt.Sprint("x:", i), Name: "x"}, func(context.Context) (string, error) { return "", nil })
		AddResourceTemplate(s, ResourceTemplate{URITemplate: fmt.Sprintf("y%d:{a}", i), Name: "y"}, func(context.Context, struct {
			A string `json:"a"`
		}) (string, error) {
			return "", nil
		})
	}
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		for round := range 2 {
			params, pages := `{}`, 0
			for params != "" {
				res, err := s.Handle(t.Context(), &Request{Method: method, Params: json.RawMessage(params)})
				if err != nil {
					t.Fatalf("%s: %v", method, err)
				}
				if got, want := res.JSON(), encode(res); string(got) != string(want) {
					t.Errorf("%s is\n%s, want\n%s", method, got, want)
				}
				var more struct{ NextCursor string }
				if err := json.Unmarshal(res.JSON(), &more); err != nil {
					t.Fatal(err)
				}
				if params = ""; more.NextCursor != "" {
					params = fmt.Sprintf(`{"cursor":%q}`, more.NextCursor)
				}
				pages++
			}
			if pages != 3 {
				t.Errorf("%s has %d pages, want 3", method, pages)
			}
			if round == 0 {
				tool(3, "second")
			}
		}
	}
	tool(0, "third")
	res, err := s.Handle(t.Context(), &Request{Method: "tools/list"})
	if err != nil || !strings.Contains(string(res.JSON()), "third") {
		t.Errorf("after a change the list is %v, %v", res, err)
	}
}

// A page ends before its tools are more than a client reads at once; one that is larger has
// a page of its own.
func TestPagesOfLargeTools(t *testing.T) {
	s := &Server{Name: "s"}
	for i, size := range []int{400 << 10, 400 << 10, 400 << 10, 2 << 20, 10, 10} {
		AddTool(s, Tool{Name: fmt.Sprint("t", i), Description: strings.Repeat("x", size)},
			func(context.Context, struct{}) (string, error) { return "", nil })
	}
	var got []int
	for after := cursor(0); after != ""; {
		res, err := s.Handle(t.Context(), &Request{Method: "tools/list", Params: encode(map[string]string{"cursor": after})})
		if err != nil {
			t.Fatal(err)
		}
		l := res.(*List[Tool])
		got, after = append(got, len(l.Items)), l.NextCursor
	}
	if want := []int{2, 1, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("the pages have %v tools, want %v", got, want)
	}
	if n := len(s.tools.snapshot().pages); n != len(got) {
		t.Errorf("%d pages are kept, want all %d", n, len(got))
	}
}
