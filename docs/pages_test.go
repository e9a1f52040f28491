// Package docs_test runs the code of the pages about the SDK.
package docs_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The pages whose Go code is all part of a program, an example or a test.
var pages = []string{"server.md", "client.md", "testing.md", "wire.md"}

// TestPages finds each block of Go of the pages in a Go file, so that it is compiled and run, and
// checks that the files of links exist.
func TestPages(t *testing.T) {
	var code strings.Builder
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && path != "." && !strings.HasPrefix(path, "examples") && path != "docs" && path != "mcp" && path != "mcptest":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := os.ReadFile("../" + path)
		code.WriteString(unindented(string(file)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	block, link := regexp.MustCompile("(?s)```go\r?\n(.*?)```"), regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := block.FindAllSubmatch(text, -1)
		if len(blocks) == 0 {
			t.Errorf("%s has no Go", page)
		}
		for _, b := range blocks {
			if !strings.Contains(code.String(), unindented(string(b[1]))) {
				t.Errorf("%s: no Go file of docs, examples, mcp or mcptest has this code:\n%s", page, b[1])
			}
		}
		for _, l := range link.FindAllSubmatch(block.ReplaceAll(text, nil), -1) {
			if _, err := os.Stat(string(l[1])); err != nil {
				t.Errorf("%s: link %s: %v", page, l[1], err)
			}
		}
	}
}

// unindented returns the lines of a text without the white space around them and without empty
// lines at its ends.
func unindented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return strings.Join(lines, "\n") + "\n"
}
