package docs_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Each message that errors.md and gateway.md explain is one of the program's: a constant text of its
// sources, in which … stands for what is filled in.
func TestMessages(t *testing.T) {
	texts := constantTexts(t)
	for page, least := range map[string]int{"errors.md": 40, "gateway.md": 15} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, table := range strings.Split(string(text), "| Message |")[1:] {
			table, _, _ = strings.Cut(table, "\n\n")
			for _, row := range regexp.MustCompile("(?m)^\\| `([^`]*)` \\|").FindAllStringSubmatch(table, -1) {
				found++
				message := strings.TrimSuffix(strings.TrimPrefix(row[1], `{"error":"`), `"}`)
				if !strings.Contains(texts, message) {
					t.Errorf("%s: nothing in the program says %q", page, row[1])
				}
			}
		}
		if found < least {
			t.Errorf("%s has only %d messages; the search is broken", page, found)
		}
	}
}

// constantTexts returns the strings of the program's sources, with … in place of each verb of
// package fmt.
func constantTexts(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	verb := regexp.MustCompile(`%[.\d]*[svdqT]`)
	for _, dir := range []string{"auth", "audit", "gateway", "internal", "jsonrpc", "launch", "limit", "mcp", "schema", "cmd"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var s scanner.Scanner
			file := token.NewFileSet().AddFile(path, -1, len(code))
			s.Init(file, code, nil, 0)
			for {
				_, tok, lit := s.Scan()
				if tok == token.EOF {
					return nil
				}
				if tok != token.STRING {
					continue
				}
				text, err := strconv.Unquote(lit)
				if err != nil {
					return err
				}
				text = strings.ReplaceAll(text, "%q", `"…"`)
				all.WriteString(verb.ReplaceAllString(text, "…") + "\n")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
