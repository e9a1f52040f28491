package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func newUpstream() *mcp.Server {
	srv := &mcp.Server{Name: "shop"}
	mcp.AddTool(srv, mcp.Tool{Name: "place-order"}, func(ctx context.Context, in struct {
		Item string `json:"item"`
	}) (string, error) {
		yes, err := mcp.Confirm(ctx, "Buy "+in.Item+"?")
		if err != nil || !yes {
			return "not bought", err
		}
		return "bought " + in.Item, nil
	})
	mcp.AddTool(srv, mcp.Tool{Name: "create-product"}, func(context.Context, struct{}) (string, error) { return "created", nil })
	mcp.AddTool(srv, mcp.Tool{Name: "products"}, func(_ context.Context, in struct {
		Category string `json:"category"`
		Max      int    `json:"max,omitempty"`
	}) (string, error) {
		return fmt.Sprint(in.Category, " ", in.Max), nil
	})
	mcp.AddTool(srv, mcp.Tool{Name: "hours"}, func(context.Context, struct{}) (string, error) { return "9 to 18", nil })
	return srv
}

// Any revision in front of any other: tools have their new names and fixed arguments, and questions reach
// the caller.
func TestProxy(t *testing.T) {
	answers := func() *mcp.Client {
		return &mcp.Client{OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
		}}
	}
	for _, behind := range mcp.Revisions() {
		for _, front := range mcp.Revisions() {
			t.Run(string(front+" before "+behind), func(t *testing.T) {
				upstream := mcptest.Connect(t, newUpstream(), answers(), behind)
				s := mcptest.Connect(t, newProxy(upstream), answers(), front)
				var tools []string
				for tool, err := range s.Tools(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					tools = append(tools, tool.Name)
				}
				if slices.Sort(tools); !slices.Equal(tools, []string{"buy", "hours", "tents"}) {
					t.Errorf("the tools are %q", tools)
				}
				if got, err := mcp.CallAs[string](t.Context(), s, "hours", nil); err != nil || got != "9 to 18" {
					t.Errorf("hours = %q, %v", got, err)
				}
				if got, err := mcp.CallAs[string](t.Context(), s, "tents", map[string]int{"max": 3}); err != nil || got != "tents 3" {
					t.Errorf("tents = %q, %v", got, err)
				}
				for _, hidden := range []string{"place-order", "products", "create-product"} {
					if _, err := s.CallTool(t.Context(), hidden, nil); err == nil || !strings.Contains(err.Error(), "no tool") {
						t.Errorf("%s = %v, want no tool", hidden, err)
					}
				}
				got, err := mcp.CallAs[string](t.Context(), s, "buy", map[string]string{"item": "tea"})
				if asks := min(front, behind) >= mcp.V2025_06_18; asks && (err != nil || got != "bought tea") || !asks && err == nil {
					t.Errorf("buy = %q, %v", got, err)
				}
			})
		}
	}
}
