package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// listTables are the files that may name the methods of the lists of servers side by side, and why.
var listTables = map[string]string{
	"mcp/server.go":       "calls the function for each method",
	"metrics/counters.go": "has a counter for each of these and other methods",
}

// TestListMethodsAreInOneTable finds tables of the methods of lists outside of internal/feature: a
// case, a literal or a condition that names three of the four.
func TestListMethodsAreInOneTable(t *testing.T) {
	found := map[string]bool{}
	for path := range sources(t) {
		if strings.HasPrefix(path, "internal/revision/") || strings.HasPrefix(path, "internal/wirecheck/") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join("../..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range listTablesOf(f) {
			found[path] = true
			if listTables[path] == "" {
				t.Errorf("%s:%d: names the methods of lists; ask feature.Of or feature.All", path, fset.Position(n.Pos()).Line)
			}
		}
	}
	for path := range listTables {
		if !found[path] {
			t.Errorf("%s has no table of lists any more; take it out of listTables", path)
		}
	}
}

// listTablesOf returns the smallest nodes that name three methods of lists.
func listTablesOf(f *ast.File) (found []ast.Node) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.SwitchStmt, *ast.CompositeLit, *ast.BinaryExpr:
		case *ast.GenDecl:
			return true
		default:
			return true
		}
		named := map[string]bool{}
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt:
				for _, c := range n.List { // the cases of a switch, not what they do
					if c, ok := c.(*ast.CaseClause); ok {
						for _, e := range c.List {
							nameLists(e, named)
						}
					}
				}
				return false
			case ast.Expr:
				nameLists(n, named)
			}
			return true
		})
		if len(named) >= 3 {
			found = append(found, n)
			return false
		}
		return true
	})
	return found
}

// nameLists adds the method of a list that an expression names.
func nameLists(e ast.Expr, named map[string]bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		switch text, _ := strconv.Unquote(e.Value); text {
		case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
			named[text] = true
		}
	case *ast.SelectorExpr:
		switch e.Sel.Name {
		case "MethodTools", "MethodPrompts", "MethodResources", "MethodTemplates":
			named[e.Sel.Name] = true
		}
	}
}

func TestListTables(t *testing.T) {
	for src, want := range map[string]int{
		`switch m { case "tools/list", "prompts/list": case revision.MethodResources: }`:                     1,
		`x := []string{"tools/list", "prompts/list", "resources/list"}`:                                      1,
		`ok := m == "tools/list" || m == "prompts/list" || m == revision.MethodTemplates`:                    1,
		`x := map[string]int{"tools/list": 1, "prompts/list": 2}`:                                            0,
		`switch m { case "tools/list": a("prompts/list"); b("resources/list") }`:                             0,
		`x := []feature.List{feature.Tools, feature.Prompts, feature.Resources, feature.Templates}`:          0,
		`x := []list{{"tools/list", "a"}, {"prompts/list", "b"}, {"resources/templates/list", "c"}}; use(x)`: 1,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p\nfunc f() {\n"+src+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(listTablesOf(f)); got != want {
			t.Errorf("%s: found %d tables, want %d", src, got, want)
		}
	}
}
