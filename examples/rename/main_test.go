package main

import (
	"context"
	"net"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func toolsOf(t *testing.T, s *mcp.Session) (names []string) {
	t.Helper()
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// Guests find what is on the public shelf, and nothing else, on every revision and wire.
func TestGuests(t *testing.T) {
	guests := func() *mcp.Server { return newGuests(newShop()) }
	mcptest.Every(t, guests, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		if got := toolsOf(t, s); !slices.Equal(got, []string{"find"}) {
			t.Errorf("guests have the tools %q", got)
		}
		if got, err := mcp.CallAs[string](t.Context(), s, "find", map[string]string{"words": "tea"}); err != nil || got != "tea on the public shelf" {
			t.Errorf("find = %q, %v", got, err)
		}
		res, err := s.CallTool(t.Context(), "find", Search{Shelf: "staff", Words: "tea"})
		if err == nil && !res.IsError {
			t.Errorf("find on the staff shelf = %s", res.Text())
		}
		for _, hidden := range []string{"search", "erase"} {
			if res, err := s.CallTool(t.Context(), hidden, nil); err == nil {
				t.Errorf("%s = %s", hidden, res.Text())
			}
		}
	})
}

// Both are at one address.
func TestBoth(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- newEndpoint().Serve(ctx, ln) }()
	for path, want := range map[string][]string{"/mcp": {"erase", "search"}, "/guests": {"find"}} {
		s, err := (&mcp.Client{}).Dial(ctx, "http://"+ln.Addr().String()+path)
		if err != nil {
			t.Fatal(err)
		}
		if got := toolsOf(t, s); !slices.Equal(got, want) {
			t.Errorf("%s has the tools %q, want %q", path, got, want)
		}
		s.Close()
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
