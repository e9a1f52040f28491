package main

import (
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Clients before 2025-06-18 do not send the other arguments, and get the cities of all countries.
func TestCities(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		want := []string{"Lille", "Lyon"}
		if s.Revision() < mcp.V2025_06_18 {
			want = []string{"Lecce", "Lille", "Lyon"}
		}
		of := mcp.Feature{Kind: mcp.KindPrompt, Name: "visit"}
		got, err := s.Complete(t.Context(), of, "city", "l", map[string]string{"country": "France"})
		if err != nil || !slices.Equal(got.Values, want) {
			t.Errorf("cities with l = %v, %v, want %q", got, err, want)
		}
		got, err = s.Complete(t.Context(), of, "country", "it", nil)
		if err != nil || !slices.Equal(got.Values, []string{"Italy"}) {
			t.Errorf("countries with it = %v, %v", got, err)
		}
	})
}
