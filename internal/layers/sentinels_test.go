package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestSentinelsNameTheirPackage finds exported errors of libraries whose text does not begin with
// the name of the package. Other packages wrap them, and the text should still say where the error
// is from.
func TestSentinelsNameTheirPackage(t *testing.T) {
	const root = "../.."
	inner := []string{"bench", "cmd", "examples", "internal", "interop", "testdata"}
	count, fset := 0, token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (slices.Contains(inner, d.Name()) || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for name, text := range sentinels(f) {
			count++
			if !strings.HasPrefix(text, f.Name.Name+": ") {
				t.Errorf("%s: the text of %s is %q, want it to begin with %q", path, name, text, f.Name.Name+": ")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 20 {
		t.Errorf("found only %d errors", count)
	}
}

// sentinels returns the texts of the exported errors of a file, by name.
func sentinels(f *ast.File) map[string]string {
	found := map[string]string{}
	for _, d := range f.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if !name.IsExported() || !strings.HasPrefix(name.Name, "Err") || i >= len(v.Values) {
					continue
				}
				call, ok := v.Values[i].(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					continue // the error of another package
				}
				if text, ok := call.Args[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
					found[name.Name], _ = strconv.Unquote(text.Value)
				}
			}
		}
	}
	return found
}

func TestSentinels(t *testing.T) {
	const src = `package p
var ErrOne = errors.New("p: one")
var (
	ErrTwo error = fmt.Errorf("two: %w", other)
	errThree = errors.New("three")
	ErrFour = q.ErrFour
)`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := sentinels(f); len(got) != 2 || got["ErrOne"] != "p: one" || got["ErrTwo"] != "two: %w" {
		t.Errorf("the errors are %q", got)
	}
}
