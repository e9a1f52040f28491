package main

import (
	"context"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// The seat is held once, whatever the revision makes of the three questions.
func TestTrip(t *testing.T) {
	held := 0
	server := func() *mcp.Server {
		held = 0
		return newServer(&booker{hold: func(context.Context, string, string) (int, error) { held++; return 7, nil }})
	}
	client := func() *mcp.Client {
		return &mcp.Client{OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			content := map[string]any{"confirm": true}
			switch {
			case strings.HasPrefix(r.Message, "When"):
				content = map[string]any{"date": "2026-12-01"}
			case strings.HasPrefix(r.Message, "Where"):
				content = map[string]any{"seat": "window"}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		}}
	}
	mcptest.Every(t, server, client, func(t *testing.T, s *mcp.Session) {
		got, err := mcp.CallAs[string](t.Context(), s, "book", Trip{"Oslo"})
		if s.Revision() < mcp.V2025_06_18 { // it has no questions
			if err == nil || held != 0 {
				t.Errorf("book = %q, %v, after %d holds", got, err, held)
			}
			return
		}
		if err != nil || got != "booked number 7: Oslo, 2026-12-01, window" || held != 1 {
			t.Errorf("book = %q, %v, after %d holds", got, err, held)
		}
	})
}

// A refusal at each question is an answer, not an error.
func TestRefused(t *testing.T) {
	b := &booker{hold: func(context.Context, string, string) (int, error) { return 7, nil }}
	for _, answers := range [][]any{
		{mcp.ErrDeclined},
		{Day{"2026-12-01"}, mcp.ErrDismissed},
		{Day{"2026-12-01"}, "aisle", false},
	} {
		if got, err := mcptest.Run(t, b.book, Trip{"Oslo"}, answers...); err != nil || got != "not booked" {
			t.Errorf("book with %v = %q, %v", answers, got, err)
		}
	}
}
