package layers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The program in the README builds, and the targets of its links exist.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
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
