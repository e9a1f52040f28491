package main

import (
	"context"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A subscribed client of every revision learns of the text and of the tool that appears.
func TestSubscribe(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var changes []string
		for e, err := range s.Watch(ctx, "board://today") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Method == "notifications/subscriptions/acknowledged" {
				if _, err := mcp.CallAs[string](ctx, s, "write", Note{"fish"}); err != nil {
					t.Fatal(err)
				}
			} else if changes = append(changes, e.Method+e.URI); len(changes) == 2 {
				cancel()
			}
		}
		slices.Sort(changes)
		if want := []string{"notifications/resources/updatedboard://today", "notifications/tools/list_changed"}; !slices.Equal(changes, want) {
			t.Errorf("the client saw %q, want %q", changes, want)
		}
		for _, want := range []string{"fish", ""} {
			if res, err := s.ReadResource(t.Context(), "board://today"); err != nil || res.Contents[0].Text != want {
				t.Errorf("the board = %v, %v, want %q", res, err, want)
			}
			if got, err := mcp.CallAs[string](t.Context(), s, "erase", nil); (err == nil && got == "erased") != (want != "") {
				t.Errorf("erase with %q on the board = %q, %v", want, got, err)
			}
		}
	})
}
