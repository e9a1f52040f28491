package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/mcp"
)

func TestNodes(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	names, routes := []string{"n1", "n2", "n3"}, make([]string, 3)
	for i := range routes {
		var err error
		if routes[i], err = freeport.Addr(); err != nil {
			t.Fatal(err)
		}
	}
	type joined struct {
		node *cluster.Node
		end  func(context.Context) error
		err  error
	}
	joins := make(chan joined)
	dir := t.TempDir()
	for i, name := range names { // at once: the first waits for the second
		go func() {
			var j joined
			_, j.node, j.end, j.err = join(ctx, name, dir, routes[i], routes)
			joins <- j
		}()
	}
	var nodes []*cluster.Node
	for range names {
		j := <-joins
		if j.err != nil {
			t.Fatal(j.err)
		}
		nodes = append(nodes, j.node)
		defer func() {
			last, stop := context.WithTimeout(context.Background(), time.Minute)
			defer stop()
			if err := j.end(last); err != nil {
				t.Error(err)
			}
		}()
	}
	var turn atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nodes[int(turn.Add(1))%3].ServeHTTP(w, r)
	}))
	defer front.Close()
	for _, r := range []mcp.Revision{"2025-11-25", "2026-07-28"} {
		s, err := (&mcp.Client{Name: "test", Version: "1", Revisions: []mcp.Revision{r}}).Dial(ctx, front.URL)
		if err != nil {
			t.Fatal(err)
		}
		where := map[string]bool{}
		for range 6 {
			res, err := s.CallTool(ctx, "where", struct{}{})
			if err != nil {
				t.Fatal(err)
			}
			where[res.Text()] = true
		}
		if want := map[mcp.Revision]int{"2025-11-25": 1, "2026-07-28": 3}[r]; len(where) != want {
			t.Errorf("%s: calls ran on %v, want %d nodes", r, where, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
