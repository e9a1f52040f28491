package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/printer"
	"go/token"
	"html/template"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const module = "github.com/patchbay-dev/patchbay"

// A pkg is a public package.
type pkg struct {
	page *page
	dir  string // in the repository
	fset *token.FileSet
	doc  *doc.Package
}

// readPackages reads the public packages: not those of programs, examples and tests.
func (s *site) readPackages() error {
	var dirs []string
	err := fs.WalkDir(s.repo, ".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch base := path.Base(dir); {
		case slices.Contains([]string{"bench", "cmd", "docs", "examples", "interop", "internal", "testdata", "node_modules"}, base), base != "." && base[0] == '.':
			return fs.SkipDir
		}
		if _, err := fs.Stat(s.repo, path.Join(dir, "go.mod")); err == nil && dir != "." {
			return fs.SkipDir // another module
		}
		dirs = append(dirs, dir)
		return nil
	})
	packages, errs := make([]*pkg, len(dirs)), make([]error, len(dirs))
	var wg sync.WaitGroup
	for i, dir := range dirs {
		wg.Go(func() { packages[i], errs[i] = s.readPackage(dir) })
	}
	wg.Wait()
	s.packages = slices.DeleteFunc(packages, func(p *pkg) bool { return p == nil })
	return errors.Join(append(errs, err)...)
}

// readPackage reads the package in a folder, if there is one, as it is on Linux.
func (s *site) readPackage(dir string) (*pkg, error) {
	names, err := fs.Glob(s.repo, path.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH = "linux", "amd64"
	ctx.JoinPath = path.Join
	ctx.OpenFile = func(name string) (io.ReadCloser, error) { return s.repo.Open(name) }
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		test := strings.HasSuffix(name, "_test.go")
		if ok, err := ctx.MatchFile(dir, path.Base(name)); err != nil || !ok || test && !strings.HasSuffix(name, "example_test.go") {
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		text, err := fs.ReadFile(s.repo, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if file.Name.Name == "main" {
			return nil, nil
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, path.Join(module, dir))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	page := &page{path: "api/" + dir + ".html", title: dir, section: packagesTitle, dir: dir, under: "package " + dir, prefix: p.Name + "."}
	return &pkg{page, dir, fset, p}, nil
}

// apiPage writes one page.
type apiPage struct {
	*pkg
	site *site
	text *comment.Parser
	html *comment.Printer
}

func (s *site) renderPackages() {
	for _, p := range s.packages {
		a := &apiPage{pkg: p, site: s, text: p.doc.Parser(), html: p.doc.Printer()}
		a.html.DocLinkURL = a.link
		seen := map[string]int{}
		a.html.HeadingID = func(h *comment.Heading) string { // several comments of a page may have the same heading
			id := h.DefaultID()
			if seen[id]++; seen[id] > 1 {
				id = fmt.Sprintf("%s-%d", id, seen[id])
			}
			return id
		}
		a.write()
		p.page.end()
	}
}

// packageList makes the page with all packages.
func (s *site) packageList() *page {
	var out strings.Builder
	out.WriteString("<h1>Packages</h1>\n<p>The public packages, as <code>go doc</code> shows them.</p>\n<ul>\n")
	for _, p := range s.packages {
		fmt.Fprintf(&out, "<li><a href=\"/%s\">%s</a>: %s</li>\n", p.page.path, p.dir, template.HTMLEscapeString(p.doc.Synopsis(p.doc.Doc)))
	}
	out.WriteString("</ul>\n")
	return &page{path: "api/index.html", title: packagesTitle, section: packagesTitle, chunks: []chunk{{html: out.String()}}}
}

// link returns the address of a name in a doc comment.
func (a *apiPage) link(l *comment.DocLink) string {
	name := l.Name
	if l.Recv != "" {
		name = l.Recv + "." + l.Name
	}
	to := a.page.path
	if l.ImportPath != "" && l.ImportPath != a.doc.ImportPath {
		dir, ours := strings.CutPrefix(l.ImportPath, module+"/")
		i := slices.IndexFunc(a.site.packages, func(p *pkg) bool { return p.dir == dir })
		if !ours || i < 0 {
			return l.DefaultURL("https://pkg.go.dev")
		}
		to = a.site.packages[i].page.path
	}
	if name != "" {
		name = "#" + name
	}
	return "/" + to + name
}

func (a *apiPage) write() {
	d := a.doc
	a.page.begin(heading{Level: 1, Title: d.Name})
	fmt.Fprintf(&a.page.out, "<h1>package %s</h1>\n<pre>import %q</pre>\n", d.Name, d.ImportPath)
	a.entry("package "+d.Name, "", d.Doc)
	a.comment(1, d.Doc)
	a.examples(2, d.Examples)
	a.values("Constants", d.Consts)
	a.values("Variables", d.Vars)
	if len(d.Funcs) > 0 {
		a.head(2, "functions", "Functions")
	}
	a.funcs(3, d.Funcs)
	if len(d.Types) > 0 {
		a.head(2, "types", "Types")
	}
	for _, t := range d.Types {
		a.symbol(3, "type", t.Name, t.Doc)
		a.code(t.Decl, a.members(t)...)
		a.comment(3, t.Doc)
		a.examples(4, t.Examples)
		a.values("", t.Consts)
		a.values("", t.Vars)
		a.funcs(4, t.Funcs)
		a.funcs(4, t.Methods)
	}
}

func (a *apiPage) funcs(level int, funcs []*doc.Func) {
	for _, f := range funcs {
		name := f.Name
		if f.Recv != "" {
			recv, _, _ := strings.Cut(strings.TrimPrefix(f.Recv, "*"), "[")
			name = recv + "." + f.Name
		}
		a.symbol(level, "func", name, f.Doc)
		a.code(f.Decl)
		a.comment(level, f.Doc)
		a.examples(level+1, f.Examples)
	}
}

func (a *apiPage) values(title string, values []*doc.Value) {
	if len(values) > 0 && title != "" {
		a.head(2, strings.ToLower(title), title)
	}
	for _, v := range values {
		for _, name := range v.Names {
			if ast.IsExported(name) {
				fmt.Fprintf(&a.page.out, "<span id=%q></span>", name)
				a.entry(name, name, v.Doc)
			}
		}
		a.code(v.Decl)
		a.comment(3, v.Doc)
	}
}

// members returns the exported fields and methods of a struct or an interface, such as Server.Name, and adds them to the search.
func (a *apiPage) members(t *doc.Type) (names []string) {
	for _, spec := range t.Decl.Specs {
		var fields *ast.FieldList
		switch kind := spec.(*ast.TypeSpec).Type.(type) {
		case *ast.StructType:
			fields = kind.Fields
		case *ast.InterfaceType:
			fields = kind.Methods
		default:
			continue
		}
		for _, f := range fields.List {
			for _, name := range f.Names {
				if name.IsExported() {
					names = append(names, t.Name+"."+name.Name)
					a.entry(t.Name+"."+name.Name, t.Name+"."+name.Name, cmp.Or(f.Doc.Text(), f.Comment.Text()))
				}
			}
		}
	}
	return names
}

// symbol writes the heading of a name, and adds it to the search.
func (a *apiPage) symbol(level int, kind, name, text string) {
	a.head(level, name, kind+" "+name)
	a.entry(name, name, text)
}

func (a *apiPage) head(level int, id, title string) {
	if level < 4 {
		a.page.begin(heading{level, id, strings.TrimPrefix(strings.TrimPrefix(title, "func "), "type ")})
	}
	a.page.out.WriteString(head(level, id, title))
}

func (a *apiPage) entry(title, anchor, text string) {
	a.site.entries = append(a.site.entries, entry{title: title, page: a.page, anchor: anchor, text: a.doc.Synopsis(text)})
}

// comment writes a doc comment below a heading of a level.
func (a *apiPage) comment(level int, text string) {
	a.html.HeadingLevel = level + 1
	a.page.out.Write(a.html.HTML(a.text.Parse(text)))
}

// code writes a declaration. Links lead to its members, which are on lines of their own.
func (a *apiPage) code(node ast.Node, members ...string) {
	if f, ok := node.(*ast.FuncDecl); ok {
		short := *f
		short.Doc, short.Body = nil, nil
		node = &short
	}
	if g, ok := node.(*ast.GenDecl); ok {
		short := *g
		short.Doc = nil
		node = &short
	}
	var text bytes.Buffer
	if err := (&printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 4}).Fprint(&text, a.fset, node); err != nil {
		panic(err) // the node was parsed
	}
	code := highlight(text.Bytes())
	for _, m := range members {
		_, name, _ := strings.Cut(m, ".")
		if at := regexp.MustCompile(`(?m)^\t(?:\w+, )*(` + name + `)\b`).FindStringSubmatchIndex(code); at != nil {
			code = code[:at[2]] + `<span id="` + m + `">` + name + "</span>" + code[at[3]:]
		}
	}
	fmt.Fprintf(&a.page.out, `<pre>%s</pre>`+"\n", code)
}

func (a *apiPage) examples(level int, examples []*doc.Example) {
	for _, x := range examples {
		title := "Example"
		if x.Suffix != "" {
			title += " (" + strings.ReplaceAll(x.Suffix, "_", " ") + ")"
		}
		fmt.Fprintf(&a.page.out, "<details><summary>%s</summary>\n", title)
		a.comment(level, x.Doc)
		var text bytes.Buffer
		var node any = &printer.CommentedNode{Node: x.Code, Comments: x.Comments}
		if x.Play != nil {
			node = x.Play
		}
		if err := (&printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 4}).Fprint(&text, a.fset, node); err != nil {
			panic(err) // the node was parsed
		}
		code := text.String()
		if x.Play == nil { // a block: without its braces
			code = strings.ReplaceAll(strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(code, "{"), "}")), "\n\t", "\n")
		}
		fmt.Fprintf(&a.page.out, `<pre>%s</pre>`+"\n", highlight([]byte(code)))
		if x.Output != "" {
			fmt.Fprintf(&a.page.out, "<p>Output:</p>\n<pre>%s</pre>\n", template.HTMLEscapeString(x.Output))
		}
		a.page.out.WriteString("</details>\n")
	}
}
