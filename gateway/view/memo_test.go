package view_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/gateway/view"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
)

// owned lists one tool of the caller, with a second page of another, and changes with the version.
func owned(version *int) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != "tools/list" {
			return mcp.RawResult(`{"tools":{},"content":[]}`), nil
		}
		name, next := principal.From(ctx), `,"nextCursor":"2"`
		if req.Param("cursor") != nil {
			name, next = name+"2", ""
		}
		return mcp.RawResult(fmt.Sprintf(`{"tools":[{"name":%q,"description":"Finds things %d","inputSchema":{"type":"object"}},{"name":"other"}]%s}`, "of_"+name, *version, next)), nil
	})
}

// Each caller gets what is made of their own list, also in turns and at once, and a changed list counts
// at once.
func TestListsAreTheCallers(t *testing.T) {
	version := 1
	for name, v := range map[string]*view.View{
		"part":   {Tools: []string{"of_*"}, Changes: map[string]middleware.ToolChange{"of_ada": {Title: "Ada's"}}},
		"search": {Tools: []string{"of_*"}, Search: new(view.Search)},
	} {
		t.Run(name, func(t *testing.T) {
			v.Name = name
			h := v.Middleware()(owned(&version))
			ask := func(who string) string {
				ctx := principal.With(t.Context(), who)
				if v.Search != nil {
					res, err := h.Handle(ctx, &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"find_tools","arguments":{"query":"things","limit":20}}`)})
					if err != nil {
						return err.Error()
					}
					return string(res.JSON())
				}
				var all strings.Builder
				for _, params := range []string{`{}`, `{"cursor":"2"}`} {
					res, err := h.Handle(ctx, &mcp.Request{Method: "tools/list", Params: []byte(params)})
					if err != nil {
						return err.Error()
					}
					all.Write(res.JSON())
				}
				return all.String()
			}
			check := func(who, other string, version int) {
				got := ask(who)
				for _, want := range []string{"of_" + who, "of_" + who + "2", fmt.Sprint("things ", version)} {
					if !strings.Contains(got, want) {
						t.Errorf("%s gets %s, which has no %q", who, got, want)
					}
				}
				if strings.Contains(got, "of_"+other) || strings.Contains(got, `"other"`) {
					t.Errorf("%s gets %s", who, got)
				}
			}
			version = 1
			var all sync.WaitGroup
			for i := range 40 {
				who := []string{"ada", "bob", "ada"}[i%2:]
				all.Go(func() { check(who[0], who[1], 1) })
			}
			all.Wait()
			version = 2
			check("ada", "bob", 2)
			check("bob", "ada", 2)
		})
	}
}

// A list that was made is returned again, while the handler behind the view lists the same.
func TestListsAreKept(t *testing.T) {
	version := 1
	h := (&view.View{Name: "part", Tools: []string{"of_*"}}).Middleware()(owned(&version))
	list := func(who string) mcp.Result {
		res, err := h.Handle(principal.With(t.Context(), who), &mcp.Request{Method: "tools/list"})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	first := list("ada")
	if list("bob") == first || list("ada") != first {
		t.Error("the list of ada is not kept, or bob has it")
	}
	for i := range 100 {
		list(fmt.Sprint("caller", i))
	}
	if list("ada") == first {
		t.Error("a hundred lists are kept")
	}
}

// A result of 40 MB is cut like any other, and of its rest so much can be read as one caller may have; the
// end says what is missing.
func TestRestIsBounded(t *testing.T) {
	long.WithoutRace(t)
	srv := &mcp.Server{Name: "large"}
	line := strings.Repeat("x", 999) + "\n"
	mcp.AddTool(srv, mcp.Tool{Name: "all"}, func(context.Context, struct{}) (string, error) { return strings.Repeat(line, 40_000), nil })
	s, err := new(mcp.Client).Open(t.Context(), (&view.View{Name: "v", Search: &view.Search{Budget: 1 << 20}}).Middleware()(srv))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(t.Context(), "call_tool", map[string]any{"name": "all"})
	if err != nil || len(res.JSON()) > 1<<20+2000 || len(res.Content) != 2 {
		t.Fatalf("a result of %d bytes, %v", len(res.JSON()), err)
	}
	link, ok := res.Content[1].(mcp.ResourceLink)
	if !ok || !strings.Contains(link.Description, "bytes") {
		t.Fatalf("no link to the rest but %+v", res.Content[1])
	}
	sum, last := len(res.Text()), ""
	for uri := link.URI; uri != ""; {
		read, err := s.ReadResource(t.Context(), uri)
		if err != nil {
			t.Fatal(err)
		}
		if last = read.Contents[0].Text; len(last) > 1<<20 {
			t.Fatalf("a part of %d bytes", len(last))
		}
		sum += len(last)
		if uri = ""; len(read.Contents) > 1 {
			uri = read.Contents[1].URI
		}
	}
	if sum < 31<<20 || sum > 33<<20 || !strings.HasSuffix(last, "bytes are left out") {
		t.Errorf("%d bytes, which end with %q", sum, last[max(0, len(last)-40):])
	}
}
