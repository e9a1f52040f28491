package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestNotes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"secret.txt": "not a note", "notes/tea.txt": "green", "notes/milk.txt": "oat"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(filepath.Join(dir, "notes"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	server := func() *mcp.Server { return newServer(folder{root}) }
	mcptest.Every(t, server, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		for uri, want := range map[string]string{"notes://list": `["milk","tea"]`, "notes://note/tea": "green"} {
			if res, err := s.ReadResource(t.Context(), uri); err != nil || res.Contents[0].Text != want {
				t.Errorf("%s = %v, %v, want %s", uri, res, err, want)
			}
		}
		for _, uri := range []string{"notes://note/coffee", "notes://note/..%2Fsecret"} {
			if res, err := s.ReadResource(t.Context(), uri); err == nil {
				t.Errorf("%s = %v, want an error", uri, res)
			}
		}
		of := mcp.Feature{Kind: mcp.KindResourceTemplate, Name: "notes://note/{name}"}
		if got, err := s.Complete(t.Context(), of, "name", "t", nil); err != nil || len(got.Values) != 1 || got.Values[0] != "tea" {
			t.Errorf("names with t = %v, %v", got, err)
		}
	})
}
