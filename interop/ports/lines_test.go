package ports

import (
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// modules have the originals.
var modules = map[string]string{"gosdk": "github.com/modelcontextprotocol/go-sdk", "mcpgo": "github.com/mark3labs/mcp-go"}

// TestPortsAreShorter counts the lines of each port and of its original, which is read from the
// module cache. The table in docs/books.md has these numbers.
func TestPortsAreShorter(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "books.md"))
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{}
	for sdk, module := range modules {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			t.Fatalf("go list -m %s: %v", module, err)
		}
		folders[sdk] = strings.TrimSpace(string(out))
	}
	books := strings.ReplaceAll(string(page), "\r\n", "\n")
	before, after := 0, 0
	for name, p := range ports {
		sdk, _, _ := strings.Cut(name, "/")
		theirs := lines(t, filepath.Join(folders[sdk], "examples", filepath.FromSlash(p.original)))
		ours := lines(t, filepath.FromSlash(name))
		if ours >= theirs {
			t.Errorf("%s has %d lines, and its original %d", name, ours, theirs)
		}
		file := name[strings.Index(name, "/")+1:]
		row := fmt.Sprintf("| %s `%s` | [%s](../interop/ports/%s/%s.go) | %d | %d |", filepath.Base(modules[sdk]), p.original, file, name, file, theirs, ours)
		if !strings.Contains(books, row+"\n") {
			t.Errorf("docs/books.md is without the row\n%s", row)
		}
		before, after = before+theirs, after+ours
	}
	if all := fmt.Sprintf("In all %d lines became %d.", before, after); !strings.Contains(books, all) {
		t.Errorf("docs/books.md is without the sentence %q", all)
	}
	if len(ports) != 20 {
		t.Errorf("there are %d ports, want 20", len(ports))
	}
}

// lines counts the lines of the Go files in a folder that hold code. Tests do not count.
func lines(t *testing.T, folder string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files: %v", folder, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		f := fset.AddFile(file, -1, len(code))
		var s scanner.Scanner
		s.Init(f, code, nil, 0) // without comments
		last := 0
		for {
			pos, tok, text := s.Scan()
			if tok == token.EOF {
				break
			}
			if tok == token.SEMICOLON && text == "\n" {
				continue // it stands at the end of a line that was counted
			}
			first := f.Line(pos)
			end := first + strings.Count(text, "\n") // of a raw string
			n += end - max(first-1, last)
			last = end
		}
	}
	return n
}
