package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// clumsy lists words that have a plainer form, which the error suggests. The list ends with
// sentences that this project once had, so that nobody writes them again.
var clumsy = []struct {
	words *regexp.Regexp
	say   string
}{
	{regexp.MustCompile(`\b[Ff]or ever\b`), "permanently"},
	{regexp.MustCompile(`\b[Ss]o often\b`), "a number of times"},
	{regexp.MustCompile(`\bbecame of\b`), "the outcome or the state"},
	{regexp.MustCompile(`\btold of\b`), "informed of, or gets"},
	{regexp.MustCompile(`\bnames no server of the host\b`), "mentions of unknown servers"},
	{regexp.MustCompile(`\bbelongs to more\b`), "is read for mentions"},
	{regexp.MustCompile(`\bthat it was decided about\b`), "it was approved for"},
	{regexp.MustCompile(`\bmay destroy\b`), "hints: destructive"},
	{regexp.MustCompile(`\bdestroys nothing\b`), "non-destructive"},
	{regexp.MustCompile(`\bchanges nothing, reaches outside\b`), "read-only, open-world"},
	{regexp.MustCompile(`\bLet in (whom|whose)\b`), "authenticate, require"},
	{regexp.MustCompile(`\bTell the model this first\b`), "system prompt"},
	{regexp.MustCompile(`\b(asked again:|asking again in)`), "retrying in"},
	{regexp.MustCompile(`\bera +legacy:`), "protocol, and the revision"},
	{regexp.MustCompile(`\bsaid yes to\b`), "trusted"},
	{regexp.MustCompile(`\bnot taken here\b`), "no credential of this kind"},
	{regexp.MustCompile(`\bare not negative\b`), "must not be negative"},
}

var (
	// A clause that begins with one of these words, up to its end. The words are part of a sentence
	// if a small letter follows; a title such as "What does not work yet" begins a line of its own.
	asSubject = regexp.MustCompile(`(?:^|[.!?:;] |\| |\* |\n)((?:Who|What|Whose|Whoever|Whatever) [a-z][^.!?|\n]*[.!?]?)|; ((?:who|what|whose|whoever|whatever) [a-z][^.!?|\n]*[.!?]?)`)
	isNo      = regexp.MustCompile(`(?:(\w+) )?\b(?:[Ii]s|[Aa]re|[Ww]as|[Ww]ere) no (%?[A-Za-z]+)`)
)

// unplain returns what is wrong with the English of a text, in which each line is a paragraph.
func unplain(text string) (faults []string) {
	for _, clause := range subjects(text) {
		faults = append(faults, strconv.Quote(clause)+": begin with a noun")
	}
	for _, m := range isNo.FindAllStringSubmatch(text, -1) {
		// "There is no" says that something is missing, and "no longer", "no more" are adverbs.
		if existential := strings.EqualFold(m[1], "there"); !existential && m[2] != "longer" && m[2] != "more" {
			faults = append(faults, strconv.Quote(m[0])+`: say "is not a"`)
		}
	}
	for _, c := range clumsy {
		if found := c.words.FindString(text); found != "" {
			faults = append(faults, strconv.Quote(found)+": say it plainly: "+c.say)
		}
	}
	return faults
}

// subjects returns the clauses of a text that begin with who, what or whose as their subject.
func subjects(text string) (clauses []string) {
	for _, m := range asSubject.FindAllStringSubmatch(text, -1) {
		if clause := m[1] + m[2]; !strings.HasSuffix(clause, "?") {
			clauses = append(clauses, clause)
		}
	}
	return clauses
}

// TestPlainEnglish reads the comments and texts of every Go file except tests, and every page.
func TestPlainEnglish(t *testing.T) {
	for path := range sources(t) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join("../..", path), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		check := func(n ast.Node, text string) {
			for _, fault := range unplain(text) {
				t.Errorf("%s:%d: %s", path, fset.Position(n.Pos()).Line, fault)
			}
		}
		for _, c := range f.Comments {
			check(c, paragraphs(c.Text()))
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, _ := strconv.Unquote(l.Value)
				check(n, text)
			}
			return true
		})
	}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".md"):
			return nil
		}
		page, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		for _, fault := range unplain(paragraphs(string(page))) {
			t.Errorf("%s: %s", path, fault)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSubjectsOfTests reads the comments of tests for subjects that are not nouns.
func TestSubjectsOfTests(t *testing.T) {
	for _, path := range goFiles(t) {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join("../..", path), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Comments {
			for _, clause := range subjects(paragraphs(c.Text())) {
				t.Errorf("%s:%d: %q: begin with a noun", path, fset.Position(c.Pos()).Line, clause)
			}
		}
	}
}

// paragraphs joins the lines of each paragraph, list entry and row of a table. It leaves out headings
// and the first rows of tables, which are titles.
func paragraphs(text string) string {
	var out []string
	open := false // the last paragraph goes on
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			open = false
			continue
		case strings.HasPrefix(line, "|-") || strings.HasPrefix(line, "| -"):
			out = out[:max(0, len(out)-1)]
			open = false
			continue
		case open && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "* ") && !strings.HasPrefix(line, "- "):
			out[len(out)-1] += " " + line
			continue
		}
		out = append(out, line)
		open = true
	}
	return strings.Join(out, "\n")
}

func TestUnplain(t *testing.T) {
	for text, want := range map[string]int{
		"Who calls this owns it.":                               1,
		"It ends. What is left is\nwritten.":                    1,
		"a: Whoever asks gets it":                               1,
		"it ends; what is left is lost":                         1,
		"What is your name? ":                                   0,
		"It says what it does.":                                 0,
		"the name is no URL":                                    1,
		"There are no servers. It is no longer than 3.":         0,
		"kept for ever":                                         1,
		"the client is told of it":                              1,
		"# What works\n\nThe rest works. There is no file here": 0,
		"| What |\n|---|\n| What is left is |":                  1,
	} {
		if got := unplain(paragraphs(text)); len(got) != want {
			t.Errorf("%q has %d faults, want %d: %q", text, len(got), want, got)
		}
	}
}
