package shop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/shop"
)

func uris(t *testing.T, s *mcp.Session) []string {
	t.Helper()
	var out []string
	for r, err := range s.Resources(t.Context(), mcp.WithoutCache()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r.URI)
	}
	slices.Sort(out)
	return out
}

// Subscribers of the catalogue are notified of orders, deliveries and new products, and
// the list of resources grows with the categories.
func TestCatalogIsWatched(t *testing.T) {
	const all, kitchen, lights = "catalog://products", "catalog://products/kitchen", "catalog://products/lights"
	mcptest.Every(t, func() *mcp.Server { return newServer(t, shop.Options{}) }, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if got := uris(t, s); len(got) != 7 || got[0] != all || !slices.Contains(got, kitchen) {
			t.Errorf("resources = %v, want the catalogue and six categories", got)
		}
		for _, step := range []struct {
			tool string
			in   args
			want []string // URIs, or "list"
		}{
			{"place-order", args{"customer": "cus-1001", "items": []args{{"product": "prd-1024"}}}, []string{all, lights}},
			{"create-product", kettle(args{"description": "x"}), []string{all, kitchen}},
			{"create-product", args{"name": "Rope", "category": "climbing", "category_title": "Climbing", "price": "99", "description": "x"}, []string{all, "list"}},
		} {
			called := false
			want := slices.Clone(step.want)
			for e, err := range s.Watch(ctx, all, kitchen, lights) {
				if err != nil {
					t.Fatalf("Watch: %v", err)
				}
				if !called { // the first event says that the subscription stands
					called = true
					if res, err := s.CallTool(ctx, step.tool, step.in); err != nil || res.IsError {
						t.Fatalf("%s = %v, %v", step.tool, res, err)
					}
					continue
				}
				what := e.URI
				if e.Method == "notifications/resources/list_changed" {
					what = "list"
				}
				i := slices.Index(want, what)
				if i < 0 {
					t.Fatalf("%s: heard of %s %q, want %q", step.tool, e.Method, what, step.want)
				}
				if want = slices.Delete(want, i, i+1); len(want) == 0 {
					break
				}
			}
			if len(want) > 0 {
				t.Errorf("%s: nothing heard of %q", step.tool, want)
			}
		}
		if got := uris(t, s); !slices.Contains(got, "catalog://products/climbing") {
			t.Errorf("resources = %v, want climbing", got)
		}
		if r, err := s.ReadResource(ctx, "catalog://products/climbing"); err != nil || !strings.Contains(r.Contents[0].Text, "Rope") || r.Contents[0].MIMEType != "application/json" {
			t.Errorf("climbing = %v, %v", r, err)
		}
	})
}

func TestCompletion(t *testing.T) {
	s := connect(t)
	template := mcp.Feature{Kind: mcp.KindResourceTemplate, Name: "catalog://products/{category}"}
	prompt := mcp.Feature{Kind: mcp.KindPrompt, Name: "describe_product"}
	for _, tt := range []struct {
		of              mcp.Feature
		argument, typed string
		want            string
	}{
		{template, "category", "", "[tents packs sleeping kitchen clothing lights]"},
		{template, "category", "T", "[tents]"},
		{template, "category", "x", "[]"},
		{prompt, "product", "prd-102", "[prd-1020 prd-1021 prd-1022 prd-1023 prd-1024]"},
		{prompt, "product", "mat", "[prd-1011 prd-1012]"},
		{prompt, "product", "zzz", "[]"},
	} {
		got, err := s.Complete(t.Context(), tt.of, tt.argument, tt.typed, nil)
		if err != nil || fmt.Sprint(got.Values) != tt.want {
			t.Errorf("Complete %q of %s = %v, %v; want %s", tt.typed, tt.of.Name, got, err, tt.want)
		}
	}
}

// Every tool has a title, hints and an output schema, and every argument says what it is.
func TestToolsAreDescribed(t *testing.T) {
	s := connect(t)
	n := 0
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		h := tool.Annotations
		if tool.Title == "" || tool.Description == "" || tool.OutputSchema == nil || h == nil || h.OpenWorld == nil || *h.OpenWorld {
			t.Errorf("%s = %+v: want a title, a description, an output schema and hints", tool.Name, tool)
			continue
		}
		if reads := h.ReadOnly != nil && *h.ReadOnly; reads != (strings.HasPrefix(tool.Name, "get-") || strings.HasPrefix(tool.Name, "product") || tool.Name == "categories") {
			t.Errorf("%s: readOnlyHint = %t", tool.Name, reads)
		}
		if h.Destructive != nil && *h.Destructive != (tool.Name == "place-order") {
			t.Errorf("%s: destructiveHint = %t", tool.Name, *h.Destructive)
		}
	}
	if n != 13 {
		t.Errorf("there are %d tools, want 13", n)
	}
}
