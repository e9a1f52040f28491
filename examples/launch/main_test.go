package main

import (
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// The program prints the answer of the tool, and has at most 29 lines.
func TestProgram(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if n := bytes.Count(source, []byte("\n")); err != nil || n > 29 {
		t.Errorf("the program has %d lines, want at most 29; %v", n, err)
	}
	srv := &mcp.Server{Name: "clock", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "now"}, func(context.Context, struct{}) (string, error) { return "noon", nil })
	web := httptest.NewServer(srv)
	defer web.Close()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("mcp.json", []byte(`{"mcpServers": {"clock": {"url": "`+web.URL+`"}, "other": {"command": 1}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	args, out := os.Args, os.Stdout
	os.Args, os.Stdout = []string{"launch", "clock", "now"}, write
	main()
	os.Args, os.Stdout = args, out
	write.Close()
	if text, err := io.ReadAll(read); err != nil || string(text) != "noon\n" {
		t.Errorf("printed %q, %v; want noon", text, err)
	}
}
