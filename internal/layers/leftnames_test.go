package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// left lists names that were given up, and what is said instead. In the folders of a row no file,
// type, function, method, field or variable of a package has one of them; in a row without folders
// no identifier at all has one. Prose and the declarations of tests are free.
var left = []struct {
	names   string
	folders []string
	say     string
}{
	{"farewell farewells debt payBy lend lentTask lends Lend", nil, "pendingCancel, proxyTask"},
	{"silence ballast", nil, "idleTimer, listHealth, health; what the runtime calls it"},
	{"hub fleet Fleet ship shelf", nil, "changeFeed, servers, server, longTexts, pool, pageCache"},
	{"hurriedFile splice care forgive hangUp", nil, "deadlineFile, textEdit, watch, reset, disconnect"},
	{"owe pay passed kept later unanswered visit", []string{"mcp", "internal/bridge"}, "add, done, taskOwners, listCache, retryAfter, unsupportedQuestion, requiredURL"},
	{"aside peers", []string{"internal/engine"}, "sessionPush, sharedPeers"},
	{"news readers coming kept", []string{"gateway"}, "subscription, subscribers, waiting, listCache"},
	{"own", []string{"config"}, "patchbaySection"},
	{"launch placed", []string{"cmd/patchbay"}, "start, ready"},
	{"measured doubt placed", []string{"host"}, "counted, suspect, added"},
}

func TestLeftNames(t *testing.T) {
	for _, path := range goFiles(t) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join("../..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		base, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".go"), "_")
		all, ofPackage := identifiers(f), []*ast.Ident(nil)
		if !strings.HasSuffix(path, "_test.go") {
			ofPackage = declared(f)
		}
		for _, row := range left {
			names, used := strings.Fields(row.names), all
			if row.folders != nil {
				used = ofPackage
				if !slices.ContainsFunc(row.folders, func(folder string) bool { return under(filepath.Dir(path), folder) }) {
					continue
				}
			}
			if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, base) }) {
				t.Errorf("%s: the name of the file was given up: say %s", path, row.say)
			}
			for _, id := range used {
				if slices.Contains(names, id.Name) {
					t.Errorf("%v: %s was given up: say %s", fset.Position(id.Pos()), id.Name, row.say)
				}
			}
		}
	}
}

// identifiers returns all identifiers of a file.
func identifiers(f *ast.File) (ids []*ast.Ident) {
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			ids = append(ids, id)
		}
		return true
	})
	return ids
}

// declared returns the names of a file's types, functions, methods and fields, and those of the
// constants and variables of its package.
func declared(f *ast.File) (ids []*ast.Ident) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			ids = append(ids, d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.ValueSpec); ok {
					ids = append(ids, spec.Names...)
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			ids = append(ids, n.Name)
		case *ast.StructType:
			for _, field := range n.Fields.List {
				ids = append(ids, field.Names...)
			}
		}
		return true
	})
	return ids
}
