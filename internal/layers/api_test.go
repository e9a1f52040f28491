package layers

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the exported API into testdata/api")

// private are the folders without a public API.
var private = []string{"internal/", "cmd/", "examples/", "bench/"}

const apiFolder = "testdata/api"

// TestExportedAPI compares the exported API of each public package with its committed list, so that no
// change is silent.
func TestExportedAPI(t *testing.T) {
	all, have := packages(t), map[string]string{} // by file name
	for folder, files := range all {
		if slices.ContainsFunc(private, func(p string) bool { return strings.Contains(folder+"/", p) }) {
			continue
		}
		list := api(t, files)
		for behind, names := range aliased(files) {
			for _, line := range api(t, all[behind]) {
				if of := ofType.FindStringSubmatch(line); of != nil && slices.Contains(names, of[1]+of[2]) {
					list = append(list, line)
				}
			}
		}
		slices.Sort(list)
		have[strings.ReplaceAll(folder, "/", "_")+".txt"] = strings.Join(slices.Compact(list), "\n") + "\n"
	}
	if len(have) < 10 {
		t.Fatalf("found only %d public packages; the walk is broken", len(have))
	}
	kept, err := filepath.Glob(apiFolder + "/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range kept {
		if _, ok := have[filepath.Base(path)]; ok {
			continue
		}
		if !*update {
			t.Errorf("%s is the API of a package that is not there; go test ./internal/layers -run TestExportedAPI -update accepts that", path)
		} else if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
	for name, text := range have {
		path := filepath.Join(apiFolder, name)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Error(err)
			}
			continue
		}
		old, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if gone, come := changed(string(old), text); len(gone)+len(come) > 0 {
			t.Errorf("the exported API differs from internal/layers/%s:\n%s%s\nIf that is wanted, say in CHANGELOG.md what users have to change, and run\n\tgo test ./internal/layers -run TestExportedAPI -update",
				path, marked("- ", gone), marked("+ ", come))
		}
	}
}

// changed returns the lines of a text that another one lacks, and the reverse.
func changed(old, now string) (gone, come []string) {
	a, b := lines(old), lines(now)
	for _, l := range a {
		if !slices.Contains(b, l) {
			gone = append(gone, l)
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			come = append(come, l)
		}
	}
	return gone, come
}

func lines(text string) []string { return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") }

func marked(mark string, lines []string) (out string) {
	for _, l := range lines {
		out += "\t" + mark + l + "\n"
	}
	return out
}

// packages are the parsed files of each folder of the module, without tests.
func packages(t *testing.T) map[string][]*ast.File {
	t.Helper()
	out := map[string][]*ast.File{}
	for path := range sources(t) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		out[folder] = append(out[folder], f)
	}
	return out
}

// ofType finds the type that a line of an API is about.
var ofType = regexp.MustCompile(`^(?:type (\w+)|func \(\w* ?\*?(\w+)\))`)

// aliased are the types of internal packages that a package has made its own by aliases, by folder.
func aliased(files []*ast.File) map[string][]string {
	found := map[string][]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Assign.IsValid() || !spec.Name.IsExported() {
				return true
			}
			of, ok := spec.Type.(*ast.SelectorExpr)
			for _, imp := range f.Imports {
				path, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), module)
				if ok && ours && strings.Contains(path, "internal/") && filepath.Base(path) == of.X.(*ast.Ident).Name {
					found[path] = append(found[path], of.Sel.Name)
				}
			}
			return true
		})
	}
	return found
}

// api lists the exported declarations of a package, one a line: constants with their values, functions,
// types, and each field and method.
func api(t *testing.T, files []*ast.File) (list []string) {
	t.Helper()
	add := func(parts ...any) {
		var line strings.Builder
		for _, p := range parts {
			if s, ok := p.(string); ok {
				line.WriteString(s)
				continue
			}
			var b bytes.Buffer
			if err := printer.Fprint(&b, token.NewFileSet(), p); err != nil {
				t.Fatal(err)
			}
			line.WriteString(strings.Join(strings.Fields(b.String()), " "))
		}
		if !slices.Contains(list, line.String()) { // a file for each system declares the same
			list = append(list, line.String())
		}
	}
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
					add(&ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type})
				}
			case *ast.GenDecl:
				var of ast.Expr // the type of a group of constants
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							addType(add, spec)
						}
					case *ast.ValueSpec:
						if spec.Type != nil || len(spec.Values) > 0 {
							of = spec.Type
						}
						addValues(add, d.Tok, spec, of)
					}
				}
			}
		}
	}
	return list
}

// receiver is the name of the type that a method is of.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func addValues(add func(...any), tok token.Token, spec *ast.ValueSpec, of ast.Expr) {
	for i, name := range spec.Names {
		if !name.IsExported() {
			continue
		}
		parts := []any{tok.String() + " " + name.Name}
		if of != nil {
			parts = append(parts, " ", of)
		}
		if tok == token.CONST && i < len(spec.Values) {
			parts = append(parts, " = ", spec.Values[i])
		}
		add(parts...)
	}
}

func addType(add func(...any), spec *ast.TypeSpec) {
	head := []any{"type " + spec.Name.Name}
	if spec.TypeParams != nil {
		for i, p := range spec.TypeParams.List {
			before := ", "
			if i == 0 {
				before = "["
			}
			head = append(head, before+names(p.Names)+" ", p.Type)
		}
		head = append(head, "]")
	}
	if spec.Assign.IsValid() {
		head = append(head, " =")
	}
	members := func(kind string, list *ast.FieldList) {
		add(append(head, " "+kind)...)
		for _, m := range list.List {
			var what ast.Node = m.Type
			if len(m.Names) == 0 {
				if ast.IsExported(strings.TrimPrefix(last(m.Type), "*")) || kind == "interface" {
					add("type "+spec.Name.Name+" "+kind+", embeds ", what)
				}
				continue
			}
			for _, name := range m.Names {
				if !name.IsExported() {
					continue
				}
				if f, ok := m.Type.(*ast.FuncType); ok && kind == "interface" {
					add("type "+spec.Name.Name+" interface, method ", &ast.FuncDecl{Name: name, Type: f})
					continue
				}
				add("type "+spec.Name.Name+" "+kind+", "+name.Name+" ", what)
			}
		}
	}
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		members("struct", typ.Fields)
	case *ast.InterfaceType:
		members("interface", typ.Methods)
	default:
		add(append(head, " ", typ)...)
	}
}

func names(list []*ast.Ident) string {
	var out []string
	for _, n := range list {
		out = append(out, n.Name)
	}
	return strings.Join(out, ", ")
}

// last is the name of an embedded type without its package.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return last(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return receiver(e)
}
