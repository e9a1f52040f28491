package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// BASE-26-015, -016: our own codes are not between -32019 and -32000. -32002 is one of the
// older revisions. A comparison does not allocate a code.
func TestNoCodeIsAllocated(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, lit := range allocated(f) {
			t.Errorf("%v allocates -%s", files.Position(lit.Pos()), lit.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nconst a = -32001\nvar b = e(-32019, c < -32000)", parser.SkipObjectResolution)
	if err != nil || len(allocated(f)) != 2 {
		t.Errorf("allocated finds %d codes, %v; want 2", len(allocated(f)), err)
	}
}

// allocated returns the reserved codes that a file uses, except in comparisons.
func allocated(f *ast.File) []*ast.BasicLit {
	var found []*ast.BasicLit
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
				return false
			}
		case *ast.UnaryExpr:
			lit, ok := n.X.(*ast.BasicLit)
			if !ok || n.Op != token.SUB {
				return true
			}
			if code, err := strconv.Atoi(lit.Value); err == nil && 32000 <= code && code <= 32019 && code != 32002 {
				found = append(found, lit)
			}
		}
		return true
	})
	return found
}
