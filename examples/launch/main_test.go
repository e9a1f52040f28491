package main

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

func TestCall(t *testing.T) {
	srv := &mcp.Server{Name: "clock", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "now"}, func(context.Context, struct{}) (string, error) { return "noon", nil })
	web := httptest.NewServer(srv)
	defer web.Close()
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(`{"mcpServers": {"clock": {"url": "`+web.URL+`"}, "other": {"command": 1}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := call(t.Context(), path, "clock", "now")
	if err != nil || res.Text() != "noon" {
		t.Errorf("call = %v, %v", res, err)
	}
	if _, err := call(t.Context(), path, "clok", "now"); err == nil || !strings.Contains(err.Error(), `no server "clok"; it has clock`) {
		t.Errorf("a server that is not there: %v", err)
	}
	if _, err := call(t.Context(), path, "other", "now"); err == nil || !strings.Contains(err.Error(), "mcp.json:1") {
		t.Errorf("a server with a fault: %v", err)
	}
}
