package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestStartCompilesNothing finds regular expressions that each start of a program would compile, and those that
// package pattern compiles later but that are not valid. mcp and schema stay free of package pattern.
func TestStartCompilesNothing(t *testing.T) {
	lazy := 0
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), "../../"+path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			vars, ok := d.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			ast.Inspect(vars, func(n ast.Node) bool {
				if _, ok := n.(*ast.FuncLit); ok {
					return false // runs when it is called
				}
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch fun := callee(call); fun {
				case "pattern.Lazy":
					lazy++
					if err := valid(call.Args[0]); err != nil {
						t.Errorf("%s: %v", path, err)
					}
				case "regexp.MustCompile", "template.Must":
					switch top, _, _ := strings.Cut(path, "/"); top {
					case "bench", "mcp", "mcptest", "schema":
					default:
						if !strings.HasPrefix(path, "host/modeltest/") {
							t.Errorf("%s: %s runs at each start of the program; use pattern.Lazy or sync.OnceValue", path, fun)
						}
					}
				}
				return true
			})
		}
	}
	if lazy < 50 {
		t.Errorf("found %d expressions of package pattern; the search is broken", lazy)
	}
}

// callee returns the name of the called function, as PACKAGE.NAME.
func callee(call *ast.CallExpr) string {
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		if pkg, ok := sel.X.(*ast.Ident); ok {
			return pkg.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// valid compiles an expression that is a single literal.
func valid(arg ast.Expr) error {
	lit, ok := arg.(*ast.BasicLit)
	if !ok {
		return nil // the tests of its package use it
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return err
	}
	if _, err := regexp.Compile(text); err != nil {
		return fmt.Errorf("pattern.Lazy(%s): %w", lit.Value, err)
	}
	return nil
}
