package layers

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// shared explains each exported top-level name of two of the packages that are used together.
var shared = map[string]string{
	"Annotations": "mcp's are those of the server, policy's are the ones of them that a rule may rely on",
	"Decision":    "host's is the record of one, policy's the answer to a request",
	"ErrClosed":   "as in net and os, each package has its own",
	"Error":       "limit's is the one refusal it makes, mcp's the error of the protocol",
	"Event":       "a thing that is told as it happens: of a conversation in host, of a server in mcp",
	"Limits":      "the bounds of a Host, and those of a Server and Client",
	"Middleware":  "policy's makes one of mcp's",
	"Progress":    "host's is the kind of event for mcp's",
	"Prompt":      "host's is mcp's with its server",
	"Resource":    "host's is mcp's with its server",
	"Secret":      "both are one type",
	"Server":      "host's is a server as a Host sees it",
	"Tool":        "host's is mcp's with its server",
	"Transport":   "login's is an http.RoundTripper, and named like http.Transport; mcp's carries messages",
}

// TestSharedNames finds names that two of the packages export, which a reader could take for one thing.
func TestSharedNames(t *testing.T) {
	of := map[string][]string{}
	all := packages(t)
	for _, folder := range []string{"mcp", "auth", "auth/login", "policy", "limit", "gateway", "host"} {
		for _, name := range topLevel(all[folder]) {
			of[name] = append(of[name], folder)
		}
	}
	for name, folders := range of {
		if len(folders) > 1 && shared[name] == "" {
			t.Errorf("%s is exported by %s: rename one, or explain in this test why both have it", name, strings.Join(folders, " and "))
		}
	}
	for name := range shared {
		if len(of[name]) < 2 {
			t.Errorf("%s is not shared any more; take it out of the list", name)
		}
	}
}

// maxNames bounds the exported top-level names of mcp, which a newcomer reads as one page.
const maxNames = 125

// TestNamesOfMCP keeps the index of mcp short: what not every user needs has a package of its own.
func TestNamesOfMCP(t *testing.T) {
	names := topLevel(packages(t)["mcp"])
	if len(names) > maxNames {
		t.Errorf("mcp exports %d top-level names, at most %d are wanted; put the new ones into a package of their own, as mcp/forward, mcp/level and store are", len(names), maxNames)
	}
	if len(names) < maxNames/2 {
		t.Errorf("found only %d names; the search is broken", len(names))
	}
}

// topLevel are the exported names that a package declares at its top level, each once.
func topLevel(files []*ast.File) (names []string) {
	add := func(id *ast.Ident) {
		if id.IsExported() && !slices.Contains(names, id.Name) {
			names = append(names, id.Name)
		}
	}
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(spec.Name)
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							add(name)
						}
					}
				}
			}
		}
	}
	return names
}
