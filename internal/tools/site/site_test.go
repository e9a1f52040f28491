package main

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

const repository = "../../.."

// made is the site of this repository.
var made = sync.OnceValues(func() (map[string][]byte, error) { return generate(os.DirFS(repository)) })

func ours(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := made()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The pages of this repository have no fault, each link of the site leads to a file and an element of it, and the same sources give the same bytes.
func TestSite(t *testing.T) {
	files := ours(t)
	again, err := generate(os.DirFS(repository))
	if err != nil || !maps.EqualFunc(files, again, bytes.Equal) {
		t.Errorf("another build has other files: %v", err)
	}
	ids := map[string]bool{}
	for name, page := range files {
		for _, m := range regexp.MustCompile(`<[^>]* id="?([^"\s>]*)`).FindAllSubmatch(page, -1) {
			if id := name + "#" + string(m[1]); ids[id] && strings.HasSuffix(name, ".html") {
				t.Errorf("%s is there twice", id)
			} else {
				ids[id] = true
			}
		}
	}
	links := 0
	for name, page := range files {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		for _, m := range regexp.MustCompile(`<[^>]* (?:href|src)="?([^"\s>]*)`).FindAllSubmatch(page, -1) {
			link := string(m[1])
			if regexp.MustCompile(`^(https?|mailto|data):`).MatchString(link) {
				continue
			}
			links++
			to, anchor, _ := strings.Cut(link, "#")
			if to = filepath.ToSlash(filepath.Join(filepath.Dir(name), to)); strings.HasPrefix(link, "#") {
				to = name
			}
			if files[to] == nil || anchor != "" && !ids[to+"#"+anchor] {
				t.Errorf("%s: the link %s leads nowhere", name, link)
			}
		}
	}
	if links < 4000 {
		t.Errorf("only %d links; the search is broken", links)
	}
	var lists [][][2]string
	_, list, _ := strings.Cut(string(files["site.js"]), "const contents = ")
	if err := json.NewDecoder(strings.NewReader(list)).Decode(&lists); err != nil {
		t.Fatal(err)
	}
	listed := slices.Concat(lists...)
	for _, link := range listed {
		if files[link[1]] == nil {
			t.Errorf("the navigation has %s, which is missing", link)
		}
	}
	for name := range files {
		name := regexp.MustCompile(`-\d+\.html$`).ReplaceAllString(name, ".html")
		if strings.HasSuffix(name, ".html") && name != "api/index.html" && !slices.ContainsFunc(listed, func(link [2]string) bool { return link[1] == name }) {
			t.Errorf("the navigation has no %s", name)
		}
	}
}

// The site is small: each page by itself, and all of it without pictures, as servers compress it. Without compression its text alone is more
// than 1 MB: 0.75 MB of Markdown, 0.7 MB of comments and declarations, and 0.1 MB of examples. The rest is 0.65 MB of elements, half of them
// links and code within sentences, and 0.25 MB of search.
func TestSize(t *testing.T) {
	plain, compressed := 0, 0
	for name, data := range ours(t) {
		if ext := filepath.Ext(name); ext == ".png" || ext == ".svg" {
			continue
		}
		if len(data) > largest && strings.HasSuffix(name, ".html") {
			t.Errorf("%s has %d bytes, more than %d", name, len(data), largest)
		}
		plain += len(data)
		var small bytes.Buffer
		w := gzip.NewWriter(&small)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		compressed += small.Len()
	}
	t.Logf("%d bytes, %d compressed", plain, compressed)
	if plain > 2_600_000 || compressed > 960_000 {
		t.Errorf("the site has %d bytes, and %d compressed", plain, compressed)
	}
}

var (
	outside = regexp.MustCompile(`(?s)^.*<main[^>]*>|</main>.*$`)
	element = regexp.MustCompile(`<[^>]*>`)
)

// The text of pages is in their HTML, shown without a script: each line of code and each heading of Markdown, and each exported name.
func TestWithoutScripts(t *testing.T) {
	files := ours(t)
	texts := map[string]string{} // of all parts of a page
	for name, data := range files {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		if regexp.MustCompile(`<[^>]* hidden\b|<template|<iframe|display: *none`).Match(data) {
			t.Errorf("%s hides something", name)
		}
		if n := bytes.Count(data, []byte("<script")); n != 1 {
			t.Errorf("%s has %d scripts, want that of the search", name, n)
		}
		first := regexp.MustCompile(`-\d+\.html$`).ReplaceAllString(name, ".html")
		texts[first] += html.UnescapeString(element.ReplaceAllString(outside.ReplaceAllString(string(data), ""), ""))
		for _, m := range regexp.MustCompile(` id="?([^"\s>]*)`).FindAllSubmatch(data, -1) {
			texts[first] += "\nid " + string(m[1]) + "\n"
		}
	}
	sources, err := filepath.Glob(repository + "/docs/*.md")
	if err != nil || len(sources) < 30 {
		t.Fatal(sources, err)
	}
	for _, source := range sources {
		base := filepath.Base(source)
		text := texts[target("docs/"+base)]
		code := false
		for line := range strings.Lines(read(t, "docs/"+base)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "```") {
				code = !code
				continue
			}
			_, title, is := strings.Cut(line, "## ")
			if code && !strings.Contains(text, line) || !code && is && strings.HasPrefix(line, "#") && !strings.Contains(text, strings.ReplaceAll(title, "`", "")) {
				t.Errorf("%s: the line %q is not on its page", base, line)
			}
		}
	}
	var api strings.Builder
	for name, text := range texts {
		if strings.HasPrefix(name, "api/") {
			api.WriteString(text)
		}
	}
	for _, name := range exported(t) {
		if _, name, _ = strings.Cut(name, "."); !strings.Contains(api.String(), "\nid "+name+"\n") {
			t.Errorf("%s is on no page", name)
		}
	}
}

// A page that is too large becomes several. Links lead to the part with their anchor, and the list on the first part has all anchors.
// Links to programs of examples lead to the page that has them, and links to tests and other sources to the repository.
func TestParts(t *testing.T) {
	paragraph := strings.Repeat("A word and `code=\"/x\"`. ", 1000) + "\n\n"
	text := "# A\n\nBegin.\n\n## One\n\n[two](#two)\n\n" + paragraph + "## Two\n\n[one](#one) [page](a.md)\n\n" + paragraph +
		"## Three\n\n### Four\n\n" + paragraph + "### Five\n\n" + paragraph
	repo := small(text)
	repo["README.md"].Data = []byte("# Top\n\n![/a](docs/a.png) [1](docs/a.md#one) [2](docs/a.md#two) [5](docs/a.md#five) [A](docs/a.md)\n")
	repo["docs/a.png"] = &fstest.MapFile{}
	files, err := generate(repo)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ name, part string }{
		{"index.html", `<img src=docs/a.png alt=/a> <a href=docs/a.html#one>1</a> <a href=docs/a-2.html#two>2</a> <a href=docs/a-4.html#five>5</a> <a href=docs/a.html>A</a>`},
		{"docs/a.html", `<li><a href=#one>One</a>`},
		{"docs/a.html", `<li id=two><a href=a-2.html#two>Two</a>`},
		{"docs/a.html", `<li id=five class=sub><a href=a-4.html#five>Five</a>`},
		{"docs/a.html", `<a href=a-2.html#two>two</a>`},
		{"docs/a.html", `<code>code="/x"</code>`},
		{"docs/a-2.html", `<a href=a.html#one>one</a> <a href=a.html>page</a>`},
		{"docs/a-2.html", `<h1>A <small>part 2</small></h1>`},
		{"docs/a-2.html", `<a rel=next href=a-3.html>A, part 3 →</a>`},
		{"docs/a-4.html", "<h2>Three, continued</h2>\n<h3 id=five>"},
		{mark, `["docs/a-4.html","A","",[["Five","five"`},
	} {
		data := files[want.name]
		if want.name == mark {
			data = unpacked(t, data)
		}
		if !bytes.Contains(data, []byte(want.part)) {
			t.Errorf("%s has not %s:\n%.3000s", want.name, want.part, data)
		}
	}
	repo = small("# A\n\n[1](../examples/b/main.go) [2](../examples/b/main_test.go) [3](../x/x.go)\n")
	for _, name := range []string{"a/main.go", "b/main.go", "b/main_test.go", "b/more.go"} {
		repo["examples/"+name] = &fstest.MapFile{Data: []byte("package main // " + name + "\n")}
	}
	files, err = generate(repo)
	if err != nil {
		t.Fatal(err)
	}
	links := `<a href=../examples/programs.html#b-main.go>1</a> <a href=https://github.com/patchbay-dev/patchbay/blob/main/examples/b/main_test.go>2</a> <a href=https://github.com/patchbay-dev/patchbay/blob/main/x/x.go>3</a>`
	if page := string(files["docs/a.html"]); !strings.Contains(page, links) {
		t.Errorf("docs/a.html has not %s:\n%s", links, page)
	}
	page := string(files["examples/programs.html"])
	if !strings.Contains(page, `<p id=b-main.go>main.go`) || !strings.Contains(page, "<i>// b/more.go</i>") || strings.Contains(page, "// a/main.go") || strings.Contains(page, "// b/main_test.go") {
		t.Errorf("programs of the examples:\n%s", page)
	}
	_, err = generate(small("# A\n\n" + paragraph + paragraph + paragraph))
	if err == nil || !strings.HasPrefix(err.Error(), "docs/a.html has ") || !strings.HasSuffix(err.Error(), " bytes, more than 60000: divide its longest section by headings") {
		t.Errorf("a page that cannot be divided: %v", err)
	}
}

// unpacked returns the JSON of the search.
func unpacked(t *testing.T, script []byte) []byte {
	t.Helper()
	_, text, _ := bytes.Cut(script, []byte(`"`))
	text, _, _ = bytes.Cut(text, []byte(`"`))
	data, err := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(text))))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A build takes less than a second.
func BenchmarkSite(b *testing.B) {
	for b.Loop() {
		if _, err := generate(os.DirFS(repository)); err != nil {
			b.Fatal(err)
		}
	}
}

// search returns the best results of queries, as the script of the site finds them.
func search(t *testing.T, queries []string) (found [][]string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("PATCHBAY_INTEROP") == "required" {
			t.Fatal(err)
		}
		t.Skip("without Node the script of the search cannot run")
	}
	files := ours(t)
	script := string(files["site.js"]) + string(files[mark]) + `
let text = "";
process.stdin.on("data", (d) => (text += d)).on("end", async () => {
  const all = read(await unpack(index));
  console.log(JSON.stringify(JSON.parse(text).map((q) => find(all, q).slice(0, 10).map((e) => e[0] + "\n" + e[2]))));
});`
	file := filepath.Join(t.TempDir(), "search.js")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, file)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// The search finds every exported name, verb, flag, exit code and message of an error among its first ten results.
func TestSearchFindsEverything(t *testing.T) {
	queries := map[string]string{} // to a part of a result
	names := exported(t)
	if len(names) < 1500 {
		t.Errorf("only %d exported names; the search is broken", len(names))
	}
	for _, name := range names {
		queries[name] = name + "\napi/"
	}
	page := read(t, "docs/command-line.md")
	verbs := regexp.MustCompile(`(?m)^### (patchbay .*)$`).FindAllStringSubmatch(page, -1)
	flags := regexp.MustCompile(`(?m)^(?:-\w, )?(--[\w-]+)`).FindAllStringSubmatch(page, -1)
	exits := regexp.MustCompile("(?m)^\\| `(\\d+)` \\|").FindAllStringSubmatch(page, -1)
	if len(verbs) < 70 || len(flags) < 150 || len(exits) < 12 {
		t.Errorf("only %d verbs, %d flags, %d exit codes; the search is broken", len(verbs), len(flags), len(exits))
	}
	for _, m := range verbs {
		queries[m[1]] = m[1] + "\ndocs/command-line"
	}
	for _, m := range flags {
		queries[m[1]] = m[1]
	}
	for _, m := range exits {
		queries["exit code "+m[1]] = m[1] + "\ndocs/command-line.html#row-" // in the first part
	}
	messages := 0
	for _, name := range []string{"docs/gateway.md", "docs/errors.md"} {
		_, rows, _ := strings.Cut(read(t, name), "| Message |")
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(rows, -1) {
			messages++
			queries[m[1]] = m[1]
		}
	}
	if messages < 20 {
		t.Errorf("only %d messages; the search is broken", messages)
	}
	list := slices.Sorted(maps.Keys(queries))
	for i, found := range search(t, list) {
		if want := queries[list[i]]; !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, want) }) {
			t.Errorf("%q finds %q, not %q", list[i], found, want)
		}
	}
}

// Words find the guide first, before flags, rows of tables and names of packages with the same word.
func TestSearchFindsGuides(t *testing.T) {
	tests := [][2]string{ // a query, and the page of the first result
		{"team", "docs/deploy.html"},
		{"wire", "docs/wire.html"},
		{"API key server", "docs/cookbook/keys.html"},
		{"policy", "docs/policy.html"},
		{"gateway", "docs/gateway.html"},
		{"write a server", "docs/server.html"},
		{"log in", "docs/auth.html"},
		{"docker", "docs/install.html"},
	}
	var queries []string
	for _, tt := range tests {
		queries = append(queries, tt[0])
	}
	for i, found := range search(t, queries) {
		if len(found) == 0 || !strings.HasSuffix(found[0], "\n"+tests[i][1]) {
			t.Errorf("%q finds %q, want %s first", queries[i], found, tests[i][1])
		}
	}
}

// exported returns the exported names of the public packages, such as mcp.Server and mcp.Server.Use, by go/parser alone.
func exported(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{"internal", "cmd", "bench", "docs", "examples", "interop", "testdata"}, d.Name()) || d.Name()[0] == '.' && len(d.Name()) > 2 {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != repository {
				return fs.SkipDir // another module
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_windows.go") || strings.HasSuffix(path, "_darwin.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		add := func(parts ...*ast.Ident) {
			name := file.Name.Name
			for _, p := range parts {
				if !p.IsExported() {
					return
				}
				name += "." + p.Name
			}
			names = append(names, name)
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					add(decl.Name)
					continue
				}
				ast.Inspect(decl.Recv.List[0].Type, func(n ast.Node) bool {
					id, ok := n.(*ast.Ident)
					if ok && id.IsExported() && !strings.HasPrefix(id.Name, "_") && len(id.Name) > 1 {
						add(id, decl.Name)
					}
					return !ok
				})
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(spec.Name)
					case *ast.ValueSpec:
						for _, id := range spec.Names {
							add(id)
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// small is a repository whose page docs/a.md has a text.
func small(text string) fstest.MapFS {
	return fstest.MapFS{
		"README.md":      {Data: []byte("# Top\n")},
		"docs/README.md": {Data: []byte("# Contents\n\n## Start\n\n* [Top](../README.md)\n* [A](a.md)\n")},
		"docs/a.md":      {Data: []byte(text)},
		"go.mod":         {Data: []byte("module x\n")},
		"x/x.go":         {Data: []byte("// Package x has <b>nothing</b>.\npackage x\n\n// T is a type, see [F].\ntype T struct{ A int }\n\nfunc F() {}\n")},
	}
}

// Each fault of a page ends the build with its file and line.
func TestFaults(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"# A\n\n[x](b.md)", "docs/a.md:3: link b.md: the file docs/b.md does not exist"},
		{"# A\n\nText\n[x](#b)", "docs/a.md:4: link #b: the heading #b does not exist"},
		{"# A\n\n[x](README.md#nothing)", "docs/a.md:3: link README.md#nothing: the heading #nothing does not exist"},
		{"# A\n\n[x](../../etc/passwd)", "docs/a.md:3: link ../../etc/passwd: it leads out of the repository"},
		{"# A\n\n[x](/etc/passwd)", "docs/a.md:3: link /etc/passwd: only https, http, mailto and files of the repository can be linked to"},
		{"# A\n\n[x](javascript:alert(1))", "docs/a.md:3: link javascript:alert(1): only https, http, mailto and files of the repository can be linked to"},
		{"# A\n\n[x](../x/x.go#L3)", "docs/a.md:3: link ../x/x.go#L3: the heading #L3 does not exist"},
		{"# A\n\n[x](..)", "docs/a.md:3: link ..: . is a folder: link to a file of it"},
		{"# A\n\n![](../go.mod)", "docs/a.md:3: image ../go.mod: the image needs a text for people who do not see it"},
		{"# A\n\n![x](no.png)", "docs/a.md:3: image no.png: the file docs/no.png does not exist"},
		{"# A\n\n```\nx\n```\n", "docs/a.md:3: a code block without a language; for output use ```text"},
		{"# A\n\n* x\n\n  ```\n  x\n  ```\n", "docs/a.md:5: a code block without a language; for output use ```text"},
		{"# A\n\n```go\nx\n", "docs/a.md:3: this code block has no end"},
		{"# A\n\n    x\n", "docs/a.md:3: an indented code block has no language: use ``` with one"},
		{"# A\n\n<script>alert(1)</script>\n", "docs/a.md:3: HTML is not shown: write Markdown, or put it into backquotes"},
		{"# A\n\nx <b>y</b>\n", "docs/a.md:3: HTML is not shown: write Markdown, or put it into backquotes"},
		{"# A\n\nx \xff\n", "docs/a.md:3: this line is not UTF-8"},
		{"A\n", "docs/a.md:1: the page does not begin with a heading (# TITLE)"},
		{"# A\n\n## !\n", "docs/a.md:3: this heading has no text to link to"},
	} {
		if _, err := generate(small(tt.text)); err == nil || !strings.Contains("\n"+err.Error()+"\n", "\n"+tt.want+"\n") {
			t.Errorf("%q: the error is %v, want %s", tt.text, err, tt.want)
		}
	}
	repo := small("# A\n")
	repo["docs/b.md"] = &fstest.MapFile{Data: []byte("# B\n")}
	if _, err := generate(repo); err == nil || err.Error() != "docs/b.md:1: this page is not in the contents (docs/README.md)" {
		t.Errorf("a page outside of the contents: %v", err)
	}
	repo = small("# A\n")
	repo["docs/README.md"].Data = append(repo["docs/README.md"].Data, "* [Again](a.md)\n"...)
	if _, err := generate(repo); err == nil || err.Error() != "docs/README.md:7: docs/a.md is in the contents twice" {
		t.Errorf("a page that is in the contents twice: %v", err)
	}
}

// Text of pages and comments is text in the site, whatever it looks like.
func TestHostile(t *testing.T) {
	files, err := generate(small("# A `<script>x</script>`\n\n`</script><script>y`\n\n```text\n</code><script>z</script>\n```\n\n| x |\n|---|\n| `<img src=x onerror=w>` |\n\n[T](../x/x.go)\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range files {
		if strings.HasSuffix(name, ".html") {
			for _, bad := range []string{"<script>", "<img src=x", "<b>nothing"} {
				if bytes.Contains(page, []byte(bad)) {
					t.Errorf("%s has %s", name, bad)
				}
			}
		}
	}
	for _, name := range []string{"docs/a.html", "api/x.html"} {
		if files[name] == nil {
			t.Errorf("%s is missing in %v", name, slices.Sorted(maps.Keys(files)))
		}
	}
}

// Anchors are those of code hosts, also of headings that are there twice.
func TestAnchors(t *testing.T) {
	files, err := generate(small("# A b: `c`\n\n## Why?\n\n## Why?\n\n[1](#a-b-c) [2](#why) [3](#why-1)\n"))
	if err != nil {
		t.Error(err)
	}
	if !bytes.Contains(files["docs/a.html"], []byte(`<h2 id=why-1>`)) {
		t.Errorf("%s", files["docs/a.html"])
	}
}

// An earlier site is replaced, and any other folder refused.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/old.html", "a/new.html"} {
		if err := write(dir, map[string][]byte{mark: nil, name: []byte(name)}); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := filepath.Glob(dir + "/a/*"); err != nil || len(found) != 1 {
		t.Errorf("the folder has %q, %v", found, err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "mine.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(other, nil); err == nil || err.Error() != fmt.Sprintf("%s has files and is not a site: name a new folder", other) {
		t.Errorf("a folder of somebody: %v", err)
	}
}
