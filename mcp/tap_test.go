package mcp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// TestConnsOfSeveralServers: servers that write into one recording do not share names of connections, so that
// a request of one is not taken for that of another.
func TestConnsOfSeveralServers(t *testing.T) {
	var mu sync.Mutex
	owners := map[string]map[string]bool{}
	for _, name := range []string{"a", "b"} {
		srv := &mcp.Server{Name: name, OnFrame: func(f trace.Frame) {
			mu.Lock()
			defer mu.Unlock()
			if owners[f.Conn] == nil {
				owners[f.Conn] = map[string]bool{}
			}
			owners[f.Conn][name] = true
		}}
		mcp.AddTool(srv, mcp.Tool{Name: "t"}, func(context.Context, struct{}) (string, error) { return "", nil })
		mux := http.NewServeMux()
		mux.Handle("/mcp", srv)
		mux.Handle("/ws", srv.WebSocket())
		web := httptest.NewServer(mux)
		defer web.Close()
		defer srv.Shutdown(t.Context())
		for _, url := range []string{web.URL + "/mcp", "ws" + strings.TrimPrefix(web.URL, "http") + "/ws"} {
			s, err := (&mcp.Client{Name: "c"}).Dial(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.CallTool(t.Context(), "t", nil); err != nil {
				t.Error(err)
			}
			s.Close()
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(owners) < 4 {
		t.Errorf("the recording has the connections %v, want two of each server", owners)
	}
	for conn, names := range owners {
		if len(names) > 1 {
			t.Errorf("the connection %s is one of both servers", conn)
		}
	}
}
