package docs_test

import (
	"context"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

type notebook struct {
	mu    sync.Mutex
	notes []string // guarded by mu
}

type Note struct {
	Text string `json:"text"`
}

func (s *notebook) add(_ context.Context, in Note) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, in.Text)
	return len(s.notes), nil
}

func newNotebook() *mcp.Server {
	s := new(notebook)
	srv := &mcp.Server{Name: "notebook", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "add", Description: "Add a note"}, s.add)
	return srv
}

// TestNotebook sees that each way of a test has a server of its own, and that calls at the same time lose nothing.
func TestNotebook(t *testing.T) {
	client := func() *mcp.Client { return &mcp.Client{Name: "test", Version: "1.0.0"} }
	mcptest.Every(t, newNotebook, client, func(t *testing.T, s *mcp.Session) {
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				if _, err := mcp.CallAs[int](t.Context(), s, "add", Note{"Emma"}); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if n, err := mcp.CallAs[int](t.Context(), s, "add", Note{"Persuasion"}); err != nil || n != 11 {
			t.Errorf("%d notes, %v, want 11", n, err)
		}
	})
}
