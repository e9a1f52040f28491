package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/tools/go/packages"
)

// neverReturn are packages whose functions end the program, or a test. What comes after them in the code of others is not reached.
var neverReturn = []string{"log", "os", "testing"}

// load returns packages of the module in a folder with their types, tests included. Nothing is compiled: the types of what they import come from its source
// too, without the bodies of functions, unless these tell which ones never return.
func load(dir string, patterns ...string) ([]*packages.Package, error) {
	fset := token.NewFileSet()
	list, err := packages.Load(&packages.Config{
		Dir: dir, Tests: true, Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypesSizes | packages.NeedModule,
	}, patterns...)
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, fmt.Errorf("%s has no packages %s", dir, patterns)
	}
	checks, room := map[*packages.Package]func(){}, make(chan struct{}, runtime.GOMAXPROCS(0))
	packages.Visit(list, nil, func(p *packages.Package) {
		checks[p] = sync.OnceFunc(func() {
			var before sync.WaitGroup
			for _, other := range p.Imports {
				before.Go(checks[other])
			}
			before.Wait()
			room <- struct{}{}
			check(p, fset, slices.Contains(list, p) || slices.Contains(neverReturn, p.PkgPath))
			<-room
		})
	})
	var all sync.WaitGroup
	for _, p := range list {
		all.Go(checks[p])
	}
	all.Wait()
	if packages.PrintErrors(list) > 0 {
		return nil, errors.New("the types are wrong")
	}
	return list, nil
}

// check sets the types of a package whose imports have theirs, whole or without what is in its functions.
func check(p *packages.Package, fset *token.FileSet, whole bool) {
	p.Fset = fset
	p.TypesInfo = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Instances: map[*ast.Ident]types.Instance{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Scopes: map[ast.Node]*types.Scope{}, FileVersions: map[*ast.File]string{},
	}
	if p.PkgPath == "unsafe" {
		p.Types = types.Unsafe
		return
	}
	failed := func(err error) {
		p.IllTyped = true
		p.Errors = append(p.Errors, packages.Error{Msg: err.Error(), Kind: packages.TypeError})
	}
	mode := parser.SkipObjectResolution
	if whole {
		mode |= parser.ParseComments
	}
	for _, name := range p.CompiledGoFiles {
		file, err := parser.ParseFile(fset, name, nil, mode)
		if err != nil {
			failed(err)
			continue
		}
		if !whole {
			hollow(file)
		}
		p.Syntax = append(p.Syntax, file)
	}
	config := types.Config{
		Importer: imports(p.Imports), Sizes: p.TypesSizes, Error: failed, IgnoreFuncBodies: !whole, DisableUnusedImportCheck: !whole,
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	p.Types, _ = config.Check(p.PkgPath, fset, p.Syntax, p.TypesInfo) // failed has the error
}

// hollow empties the functions of a file.
func hollow(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				n.Body.List = nil
			}
		case *ast.FuncLit:
			n.Body.List = nil
		}
		return true
	})
}

// imports are the packages that another one imports, by the paths that it names.
type imports map[string]*packages.Package

// Import implements [types.Importer].
func (i imports) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	p := i[path]
	if p == nil || p.Types == nil {
		return nil, fmt.Errorf("%s is not among %s", path, slices.Sorted(maps.Keys(i)))
	}
	return p.Types, nil
}
