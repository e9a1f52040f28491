package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands and their arguments run as they are written, without a shell, both from the file that
// "up" serves and after "--".
func TestNoShell(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	made := filepath.Join(dir, "made")
	var args []string
	for _, text := range []string{"$(touch FILE)", "`touch FILE`", "; touch FILE", "&& touch FILE", "| touch FILE", "> FILE", "x\ntouch FILE\n", `"; touch FILE; "`, "'; touch FILE; '"} {
		args = append(args, strings.ReplaceAll(text, "FILE", made))
	}
	server := stubServer(t, append([]string{"plain"}, args...)...)
	r := startUp(t, map[string]any{"stub": server})
	if _, err := callOnce(t, r.url, "stub_args"); err != nil {
		t.Error(err)
	}
	words := append([]string{"ping", "-n", "1", "--", "env"}, server["args"].([]string)...)
	typedRun(t, "", exitOK, words...)
	if _, err := os.Stat(made); err == nil {
		t.Errorf("a shell has run %q", args)
	}
}
