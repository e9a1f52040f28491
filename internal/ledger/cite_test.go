package ledger

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cited returns the names of the tests that cite each rule, sorted: "mcp TestX".
// Only citations in the doc comment of a test or inside its function count.
func cited(t *testing.T) map[string][]string {
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		folder := path.Dir(filepath.ToSlash(rel))
		if folder == "internal/ledger" {
			return nil // its own examples
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || fn.Body == nil || !isTest(fn.Name.Name) {
				continue
			}
			name := folder + " " + fn.Name.Name
			for _, id := range ids(textOf(f, fn)) {
				if !slices.Contains(found[id], name) {
					found[id] = append(found[id], name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no test cites a rule: are the sources here?")
	}
	for _, names := range found {
		slices.Sort(names)
	}
	return found
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")
}

// textOf returns the comments and string literals of a function.
func textOf(f *ast.File, fn *ast.FuncDecl) string {
	var b strings.Builder
	for _, c := range f.Comments {
		if c == fn.Doc || (c.Pos() > fn.Body.Pos() && c.End() < fn.Body.End()) {
			b.WriteString(strings.ReplaceAll(c.Text(), "\n", " "))
			b.WriteByte('\n')
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			b.WriteString(lit.Value)
			b.WriteByte('\n')
		}
		return true
	})
	return b.String()
}
