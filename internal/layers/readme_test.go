package layers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The README is a screen to read, its program builds, the targets of its links exist, and it has the two commands that a fresh clone
// needs.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 95 {
		t.Errorf("the README has %d lines, want at most 95: docs/features.md takes what works, docs/rough-edges.md what does not", lines)
	}
	for _, command := range []string{"$ go run ./cmd/patchbay up\n", "$ go test ./...\n"} {
		if !strings.Contains(string(text), command) {
			t.Errorf("the README does not have %q", command)
		}
	}
	blocks := regexp.MustCompile("(?s)```go\n(package main.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Fatal("the README has no Go program")
	}
	for _, b := range blocks {
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, b[1], 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "vet", file)
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("the README's program: %v\n%s", err, out)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllSubmatch(text, -1) {
		if _, err := os.Stat("../../" + string(link[1])); err != nil {
			t.Errorf("README: link %s: %v", link[1], err)
		}
	}
}
