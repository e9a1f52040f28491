package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestCalculator(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		for op, want := range map[string]float64{"plus": 8, "minus": 4, "times": 12, "over": 3} {
			got, err := mcp.CallAs[Answer](t.Context(), s, "calculate", Calculation{6, op, 2})
			if err != nil || got.Value != want {
				t.Errorf("6 %s 2 = %v, %v, want %v", op, got, err, want)
			}
		}
		for _, bad := range []Calculation{{6, "over", 0}, {6, "power", 2}} {
			if _, err := mcp.CallAs[Answer](t.Context(), s, "calculate", bad); err == nil {
				t.Errorf("%v has a result", bad)
			}
		}
		res, err := s.ReadResource(t.Context(), "table://7")
		if err != nil || !strings.Contains(res.Contents[0].Text, "6 x 7 = 42\n") {
			t.Errorf("table://7 = %v, %v", res, err)
		}
		values, err := s.Complete(t.Context(), mcp.Feature{Kind: mcp.KindResourceTemplate, Name: "table://{n}"}, "n", "", nil)
		if err != nil || !slices.Contains(values.Values, "7") {
			t.Errorf("completion = %v, %v", values, err)
		}
		prompt, err := s.GetPrompt(t.Context(), "explain", map[string]string{"expression": "6*7"})
		if err != nil || !strings.Contains(prompt.Messages[0].Content.(mcp.TextContent).Text, "6*7") {
			t.Errorf("explain = %v, %v", prompt, err)
		}
	})
}
