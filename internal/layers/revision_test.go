package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// byName lists the files outside of internal/revision, internal/engine, internal/bridge and the
// transports that may name a revision, or test the era of its table, and why. All other code asks for
// features of a revision (bridge.Remote, mcp.Revision.Sessions), so that the next revision is a row of
// the table.
var byName = map[string]string{
	"mcp/revision.go":              "defines the public names",
	"mcp/ask.go":                   "RequireURL ends a call in the form of its caller",
	"mcp/forward.go":               "an acknowledgement is an error to callers that subscribe by a request",
	"mcp/listen.go":                "callers with sessions declare no tasks in a subscription",
	"mcp/taskcall.go":              "the caller decides on a task, or the server does",
	"mcp/tasks.go":                 "callers with sessions declare no tasks in other requests",
	"mcp/tool.go":                  "a capability that is missing is an error, or the result of the tool",
	"mcp/watch.go":                 "a subscription is one request, or many",
	"internal/replay/compare.go":   "translates error codes between the two eras",
	"internal/wirecheck/schema.go": "has a file for the schema of each",
	"mcptest/context.go":           "runs a handler on one revision of each era",
	"apps/apps.go":                 "the extension says which revision is the first",
	"auth/internal/oauth/fetch.go": "has to say one before any is agreed on",
}

var revisionDate = regexp.MustCompile(`^(2024-11-05|2025-03-26|2025-06-18|2025-11-25|2026-07-28)$`)
var revisionName = regexp.MustCompile(`^V20\d\d_?\d\d_?\d\d$`)

// TestRevisionsAreAskedNotNamed finds revisions that are named, or compared as text, where a table
// should be asked.
func TestRevisionsAreAskedNotNamed(t *testing.T) {
	named := map[string]bool{}
	for file := range sources(t) {
		switch {
		case strings.HasPrefix(file, "internal/revision/"), strings.HasPrefix(file, "internal/engine/"), strings.HasPrefix(file, "internal/bridge/"), strings.HasPrefix(file, "internal/transport/"),
			strings.HasPrefix(file, "internal/conformance/"), strings.HasPrefix(file, "bench/"), strings.HasPrefix(file, "examples/"):
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join("../..", file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range revisionTests(f) {
			named[file] = true
			if byName[file] == "" {
				t.Errorf("%v names or compares a revision; ask its table what it has", fset.Position(n.Pos()))
			}
		}
	}
	for file := range byName {
		if !named[file] {
			t.Errorf("%s names no revision any more; take it out of the list", file)
		}
	}
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
const a = "2025-11-25"
var b = mcp.V2026_07_28
var c = call.Revision < d
var e = s.Revision() == d
var f = call.Peer.Revision.Sessions
var ok = call.Revision.Sessions() && "2025-11-26" != "" && h.Sessions > 0`, parser.SkipObjectResolution)
	if err != nil || len(revisionTests(f)) != 5 {
		t.Errorf("the search finds %d tests, %v; want 5", len(revisionTests(f)), err)
	}
}

// revisionTests returns the places of a file that name or compare a revision.
func revisionTests(f *ast.File) (found []ast.Node) {
	called := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && revisionDate.MatchString(text) {
				found = append(found, n)
			}
		case *ast.SelectorExpr:
			if revisionName.MatchString(n.Sel.Name) || isTableTest(n) && !called[n] {
				found = append(found, n)
			}
		case *ast.CallExpr: // a method asks
			called[n.Fun] = true
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
				if ofRevision(n.X) != ofRevision(n.Y) && !isNilOrEmpty(n.X) && !isNilOrEmpty(n.Y) {
					found = append(found, n)
					return false
				}
			}
		}
		return true
	})
	return found
}

// isTableTest reports whether an expression tests which era a table is of.
func isTableTest(n *ast.SelectorExpr) bool {
	switch n.Sel.Name {
	case "Sessions", "ParamHeaders", "CoreTasks":
	default:
		return false
	}
	of := ""
	switch x := n.X.(type) {
	case *ast.SelectorExpr:
		of = x.Sel.Name
	case *ast.Ident:
		of = x.Name
	}
	return of == "Revision" || of == "Rev" || of == "rev"
}

// ofRevision reports whether an expression is a revision by its name: x.Revision or x.Revision().
func ofRevision(e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok {
		e = call.Fun
	}
	sel, ok := e.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Revision"
}

func isNilOrEmpty(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "nil"
	case *ast.BasicLit:
		return e.Value == `""`
	}
	return false
}
