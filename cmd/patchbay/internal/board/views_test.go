package board

import (
	"slices"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/health"
)

// The status has the tokens of views and of servers, and names the largest tools of a large server.
func TestTokens(t *testing.T) {
	got := Views(&health.Report{Views: []health.View{
		{Name: "all", Path: "/mcp", Tools: 1, Tokens: 1234},
		{Name: "small", Path: "/mcp/v/small", Search: true, Tools: 3200, Tokens: 370},
		{Name: "stdio"},
	}})
	want := []string{"(view all, /mcp: 1 tool, about 1,200 tokens)", "(view small, /mcp/v/small: finds 3200 tools by search, about 370 tokens)", "(view stdio: 0 tools, about 0 tokens)"}
	if !slices.Equal(got, want) {
		t.Errorf("views %q, want %q", got, want)
	}
	largest := []health.Tool{{Name: "a", Tokens: 900}, {Name: "b", Tokens: 95}, {Name: "c", Tokens: 6}}
	for want, s := range map[string]health.Server{
		"its tools take about 1,000 tokens, the largest a (900) and b (95)": {Tokens: 1001, Largest: largest},
		"its tools take about 99 tokens":                                    {Tokens: 99, Largest: largest},
	} {
		if got := Remarks(&s, time.Time{}); len(got) != 1 || got[0] != want {
			t.Errorf("remarks %q, want %q", got, want)
		}
	}
}
