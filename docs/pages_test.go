// Package docs_test compiles the code of the pages, and runs most of it.
package docs_test

import (
	"encoding/xml"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPages finds each block of Go of the pages in a Go file, so that it is compiled and run, and
// checks that the files and headings of links exist.
func TestPages(t *testing.T) {
	var all strings.Builder
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && path != "." && !strings.HasPrefix(path, "examples") && path != "docs" && path != "mcp" && path != "mcptest":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := os.ReadFile("../" + path)
		all.WriteString(unindented(string(file)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	block, link := regexp.MustCompile("(?s)```go\r?\n(.*?)```"), regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes, err := filepath.Glob("cookbook/*.md")
	if err != nil || len(recipes) < 20 {
		t.Fatalf("%d pages of the cookbook, %v", len(recipes), err)
	}
	found := 0
	for _, page := range append(pages, recipes...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range block.FindAllSubmatch(text, -1) {
			found++
			if !strings.Contains(all.String(), unindented(string(b[1]))) {
				t.Errorf("%s: no Go file of docs, examples, mcp or mcptest has this code:\n%s", page, b[1])
			}
		}
		for _, l := range link.FindAllSubmatch(code.ReplaceAll(text, nil), -1) {
			file := filepath.Join(filepath.Dir(page), string(l[1]))
			target, err := os.ReadFile(file)
			if info, _ := os.Stat(file); err != nil && (info == nil || !info.IsDir()) {
				t.Errorf("%s: link %s: %v", page, l[1], err)
			} else if len(l[2]) > 0 && !slices.Contains(anchors(string(target)), string(l[2])) {
				t.Errorf("%s: %s has no heading %s", page, l[1], l[2])
			}
		}
	}
	if found < 40 {
		t.Errorf("the pages have only %d blocks of Go; the search is broken", found)
	}
}

// The site (internal/tools/site) takes only pages that the contents name, whose blocks of code have a language.
func TestContents(t *testing.T) {
	contents, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if page != "README.md" && !strings.Contains(string(contents), "]("+page+")") {
			t.Errorf("README.md does not list %s", page)
		}
		open := false
		for i, line := range strings.Split(strings.ReplaceAll(string(text), "\r", ""), "\n") {
			if fence := strings.TrimSpace(line); strings.HasPrefix(fence, "```") {
				if open = !open; open && fence == "```" {
					t.Errorf("%s:%d: the block of code has no language; for output write ```text", page, i+1)
				}
			}
		}
	}
}

// A link says what it leads to, which the name of a Markdown or Go file does not.
func TestLinksHaveTitles(t *testing.T) {
	link := regexp.MustCompile("\\[`?[\\w./-]+\\.(?:md|go)`?\\]\\([^)]*\\)")
	for _, pattern := range []string{"*.md", "cookbook/*.md", "../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../examples/README.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil || len(pages) == 0 {
			t.Fatal(pattern, err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range link.FindAll(text, -1) {
				t.Errorf("%s: the text of the link %s is the name of a file; write a title", page, found)
			}
		}
	}
}

// The guides explain words of authentication: their first use on a page leads to the glossary.
func TestFirstUses(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	fences, code, link := regexp.MustCompile("(?s)```.*?```"), regexp.MustCompile("`[^`\n]*`"), regexp.MustCompile(`^\]\(glossary\.md\)`)
	principal, state := regexp.MustCompile(`\b[Pp]rincipals?\b`), regexp.MustCompile("`requestState`")
	found := 0
	for _, page := range pages {
		if slices.Contains([]string{"glossary.md", "protocol.md", "translation.md", "command-line.md", "architecture.md"}, page) { // reference
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := fences.ReplaceAllString(string(text), "")
		for word, at := range map[*regexp.Regexp]string{principal: code.ReplaceAllString(prose, ""), state: prose} {
			first := word.FindStringIndex(at)
			if first == nil {
				continue
			}
			found++
			if !strings.HasSuffix(at[:first[0]], "[") || !link.MatchString(at[first[1]:]) {
				t.Errorf("%s: the first %s does not lead to the glossary", page, at[first[0]:first[1]])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d pages have such words; the search is broken", found)
	}
}

// Each picture of the pages exists, is described for people who do not see it, and is small; each that exists is in a page. Drawings
// are described by themselves too, and load nothing.
func TestImages(t *testing.T) {
	shown := map[string]bool{}
	for _, pattern := range []string{"../README.md", "*.md", "cookbook/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil || len(pages) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(pages), err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, image := range regexp.MustCompile(`!\[([^\]]*)\]\(([^)]+)\)`).FindAllSubmatch(text, -1) {
				path := filepath.Join(filepath.Dir(page), filepath.FromSlash(string(image[2])))
				if info, err := os.Stat(path); err != nil || info.Size() > 150_000 {
					t.Errorf("%s: the picture %s does not exist, or has more than 150 kB: %v", page, image[2], err)
				}
				if len(strings.Fields(string(image[1]))) < 4 {
					t.Errorf("%s: the picture %s needs a text for people who do not see it, and has %q", page, image[2], image[1])
				}
				shown[filepath.Base(path)] = true
			}
		}
	}
	images, err := os.ReadDir("images")
	if err != nil || len(images) < 7 {
		t.Fatalf("%d pictures, %v", len(images), err)
	}
	for _, image := range images {
		if !shown[image.Name()] {
			t.Errorf("no page shows images/%s", image.Name())
		}
		if !strings.HasSuffix(image.Name(), ".svg") {
			continue
		}
		drawing, err := os.ReadFile("images/" + image.Name())
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`<svg [^>]*role="img" aria-label="[^"]{20,}"`).Match(drawing) || regexp.MustCompile(`href|url\(|<script|@import`).Match(drawing) {
			t.Errorf("images/%s has no description, or loads something", image.Name())
		}
		if err := xml.Unmarshal(drawing, new(struct{})); err != nil {
			t.Errorf("images/%s: %v", image.Name(), err)
		}
	}
}

// The code of a page of the cookbook is that of the program it names, whose test it names too.
func TestCookbook(t *testing.T) {
	pages, err := filepath.Glob("cookbook/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		program := regexp.MustCompile(`\[The whole program\]\(../../examples/([\w-]+)/main\.go\)`).FindSubmatch(text)
		if program == nil || !strings.Contains(string(text), "(../../examples/"+string(program[1])+"/main_test.go)") {
			t.Errorf("%s names no program with its test", page)
			continue
		}
		sources, err := filepath.Glob("../examples/" + string(program[1]) + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, source := range sources {
			code, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			all.WriteString(unindented(string(code)))
		}
		blocks := regexp.MustCompile("(?s)```go\r?\n(.*?)```").FindAllSubmatch(text, -1)
		if len(blocks) == 0 {
			t.Errorf("%s shows no code", page)
		}
		for _, b := range blocks {
			if !strings.Contains(all.String(), unindented(string(b[1]))) {
				t.Errorf("%s: examples/%s has no such code:\n%s", page, program[1], b[1])
			}
		}
	}
}

// Each chapter of the course has a page and a program with its test.
func TestCourse(t *testing.T) {
	course, err := os.ReadFile("course.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| \d+\. (.*?) \| (.*?) \| (.*?) \|\r?$`).FindAllSubmatch(course, -1)
	if len(rows) != 14 {
		t.Errorf("the course has %d chapters", len(rows))
	}
	program := regexp.MustCompile(`\[([\w-]+)\]\(../examples/([\w-]+)/main\.go\)`)
	for _, row := range rows {
		programs := program.FindAllSubmatch(row[3], -1)
		if len(programs) == 0 || !strings.Contains(string(row[2]), ".md") {
			t.Errorf("chapter %q has no page or no program", row[1])
		}
		for _, p := range programs {
			if _, err := os.Stat("../examples/" + string(p[2]) + "/main_test.go"); err != nil || string(p[1]) != string(p[2]) {
				t.Errorf("chapter %q: program %s: %v", row[1], p[1], err)
			}
		}
	}
}

// Every example is in the list of examples.
func TestExamplesAreListed(t *testing.T) {
	list, err := os.ReadFile("../examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob("../examples/*/main.go")
	if err != nil || len(programs) < 20 {
		t.Fatalf("found only %d examples: %v", len(programs), err)
	}
	for _, p := range programs {
		if name := filepath.Base(filepath.Dir(p)); !strings.Contains(string(list), "["+name+"]("+name+"/main.go)") {
			t.Errorf("examples/README.md does not list %s", name)
		}
	}
	if links := strings.Count(string(list), "/main.go)"); links != len(programs) {
		t.Errorf("examples/README.md has %d links to %d examples", links, len(programs))
	}
}

// An example that needs arguments says so.
func TestExamplesUsage(t *testing.T) {
	programs, err := filepath.Glob("../examples/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range programs {
		code, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(code), "os.Args[") {
			continue
		}
		found++
		if !strings.Contains(string(code), `"usage: `+filepath.Base(filepath.Dir(p))+" ") {
			t.Errorf("%s needs arguments, and has no usage", p)
		}
	}
	if found < 5 {
		t.Errorf("only %d examples have arguments; the search is broken", found)
	}
}

// No example has a function that another one has too: such a helper belongs into the SDK.
func TestExamplesShareNoHelper(t *testing.T) {
	files, err := filepath.Glob("../examples/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]string{} // by the code of a function
	for _, file := range files {
		fset := token.NewFileSet()
		code, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range code.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name == "main" || f.Name.Name == "TestMain" {
				continue
			}
			var body strings.Builder
			if err := format.Node(&body, fset, f.Body); err != nil {
				t.Fatal(err)
			}
			if other := places[body.String()]; other != "" {
				t.Errorf("%s: %s is in %s too", file, f.Name.Name, other)
			}
			places[body.String()] = file
		}
	}
	if len(places) < 80 {
		t.Errorf("the examples have only %d functions; the search is broken", len(places))
	}
}

// Programs of examples and pages end with exit code 0 when ServeStdio returns nil, at the end of a client.
func TestServersEndWell(t *testing.T) {
	for _, pattern := range []string{"*.md", "../*.md", "../examples/*/*.go", "../mcp/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bad := regexp.MustCompile(`Fatal\(.*ServeStdio`).Find(code); bad != nil {
				t.Errorf("%s: %s ends with exit code 1 when its client closes the streams", file, bad)
			}
		}
	}
}

// anchors returns the links to the headings of a page, such as "#as-a-server".
func anchors(page string) (links []string) {
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*?)\r?$`).FindAllStringSubmatch(page, -1) {
		text := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		links = append(links, "#"+strings.ReplaceAll(text, " ", "-"))
	}
	return links
}

// unindented returns the lines of a text without the white space around them and without empty
// lines at its ends.
func unindented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return strings.Join(lines, "\n") + "\n"
}
