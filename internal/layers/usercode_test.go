package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// behind lists the functions that call user code outside of usercode.Runner.Run, and why that is
// right. A new hook belongs here only if its caller could not go on.
var behind = map[string]string{
	// Reached through dispatch, that is behind contained.Handle or engine.run.
	"AddTool":             "called by runTool, in Run",
	"Server.HandleTool":   "called by runTool, in Run",
	"AddResource":         "called in dispatch",
	"AddResourceTemplate": "called in dispatch",
	"AddPrompt":           "called in dispatch",
	"Server.visible":      "called in dispatch",
	"Server.serveCall":    "the engine's handler, called in Run",
	"exactNames":          "part of the chain, called in Run",
	"Server.introducing":  "part of the chain, called in Run",
	"Server.introduce":    "called by introducing",
	"localWire.serve":     "the engine's handler, called in Run",
	"Server.principalOf":  "called by serveWeb, in Run",
	"Server.Handle":       "calls contained.Handle",
	"failureOf":           "called by Engine.failure, in Run",
	// Not user code: the functions are of this module, and Tell contains the user's.
	"Tap.Frame":        "calls containedTap",
	"Causes.ofMessage": "calls Remote.CauseOf",
	// On the goroutine of the caller that passed the function, which gets its panic.
	"Once": "called in the handler that passed it",
}

// TestUserCodeIsContained finds calls of functions and methods that users of the SDK provide
// outside of usercode.Runner.Run (trap 3): fields of exported structs that are functions,
// parameters of exported functions that are, and handlers.
func TestUserCodeIsContained(t *testing.T) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, dir := range []string{"mcp", "mcp/forward", "internal/engine", "internal/bridge"} {
		paths, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	hooks := userFields(files)
	for _, name := range []string{"OnElicit", "OnEvent", "Visible", "OnPanic", "Handler"} {
		if !hooks[name] {
			t.Errorf("%s is not among the hooks: the search is broken", name)
		}
	}
	found, used := 0, map[string]bool{}
	for _, f := range files {
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			name, params := funcName(fn), map[string]bool{}
			if f.Name.Name == "mcp" || f.Name.Name == "forward" { // those of the others are passed by this module
				params = userParams(fn)
			}
			walkCalls(fn.Body, false, func(call *ast.CallExpr, contained bool) {
				what := ""
				switch fun := call.Fun.(type) {
				case *ast.Ident:
					if params[fun.Name] {
						what = fun.Name
					}
				case *ast.SelectorExpr:
					if hooks[fun.Sel.Name] || fun.Sel.Name == "Handle" || fun.Sel.Name == "HTTPHeader" {
						what = fun.Sel.Name
					}
				}
				if what == "" {
					return
				}
				found++
				if contained {
					return
				}
				if used[name] = true; behind[name] == "" {
					t.Errorf("%s: %s calls %s outside of usercode.Runner.Run", fset.Position(call.Pos()), name, what)
				}
			})
		}
	}
	if found < 20 {
		t.Errorf("found only %d calls of user code; the search is broken", found)
	}
	for name := range maps.Keys(behind) {
		if !used[name] {
			t.Errorf("%s calls no user code any more; take it out of the list", name)
		}
	}
}

// userFields are the names of the fields of exported structs whose types are functions.
func userFields(files []*ast.File) map[string]bool {
	named := map[string]bool{"HandlerFunc": true, "CompleteFunc": true, "Middleware": true, "Handler": true}
	out := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				_, isFunc := field.Type.(*ast.FuncType)
				if id, ok := field.Type.(*ast.Ident); ok && named[id.Name] {
					isFunc = true
				}
				for _, name := range field.Names {
					// Drop and Watch are made by this module.
					if isFunc && name.IsExported() && name.Name != "Drop" && name.Name != "Watch" {
						out[name.Name] = true
					}
				}
			}
			return true
		})
	}
	return out
}

// userParams are the names of the parameters of an exported function that are functions.
func userParams(fn *ast.FuncDecl) map[string]bool {
	out := map[string]bool{}
	if !fn.Name.IsExported() || fn.Recv != nil && !ast.IsExported(recvName(fn)) {
		return out
	}
	for _, p := range fn.Type.Params.List {
		_, isFunc := p.Type.(*ast.FuncType)
		if id, ok := p.Type.(*ast.Ident); ok && id.Name == "HandlerFunc" {
			isFunc = true
		}
		for _, name := range p.Names {
			if isFunc {
				out[name.Name] = true
			}
		}
	}
	return out
}

// walkCalls calls f with each call in n, and whether it is in a function that is given to Run of
// a Runner.
func walkCalls(n ast.Node, contained bool, f func(call *ast.CallExpr, contained bool)) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f(call, contained)
		runs := false
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Run" {
			of := lastName(sel.X)
			runs = of == "user" || of == "User"
		}
		walkCalls(call.Fun, contained, f)
		for _, arg := range call.Args {
			_, lit := arg.(*ast.FuncLit)
			walkCalls(arg, contained || runs && lit, f)
		}
		return false
	})
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	}
	return ""
}

func recvName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func funcName(fn *ast.FuncDecl) string {
	if of := recvName(fn); of != "" {
		return of + "." + fn.Name.Name
	}
	return fn.Name.Name
}
