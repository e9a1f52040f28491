package toolsearch_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/toolsearch"
)

// lines returns the lines of a file that are not comments.
func lines(t testing.TB, path string) (out []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

// tools returns 3,200 tools: those of testdata, and others of trades that nobody asks about.
func tools(t testing.TB) (out []toolsearch.Tool) {
	t.Helper()
	for _, line := range lines(t, "testdata/tools.txt") {
		name, rest, _ := strings.Cut(line, ": ")
		at := strings.LastIndex(rest, " (")
		out = append(out, toolsearch.Tool{Name: name, Description: rest[:at], Arguments: strings.Trim(rest[at:], " ()")})
	}
	trades := strings.Fields("clinic museum farm library harbor brewery bakery orchestra zoo theater forest mine airport school court bank insurer factory lab observatory nursery winery dairy laundry hospital")
	objects := strings.Fields("patient exhibit field loan berth barrel oven score animal stage stand shaft gate class docket vault policy line sample lens bed cask herd machine ward")
	verbs := []struct{ name, text string }{
		{"list", "List %s records of the %s, page by page"}, {"get", "Get one %s of the %s by its id"}, {"create", "Create a %s in the %s"},
		{"update", "Update fields of a %s of the %s"}, {"delete", "Delete a %s of the %s for good"},
	}
	for _, object := range objects {
		for _, trade := range trades {
			for _, v := range verbs {
				if len(out) < 3200 {
					out = append(out, toolsearch.Tool{Name: trade + "_" + v.name + "_" + object, Description: fmt.Sprintf(v.text, object, trade), Arguments: "id, fields, cursor"})
				}
			}
		}
	}
	if len(out) != 3200 {
		t.Fatalf("%d tools, want 3,200", len(out))
	}
	return out
}

var word = regexp.MustCompile(`[a-z0-9]+`)

// Of 50 questions that share no word with the name of their tool, nine of ten find it among the
// first five of 3,200.
func TestQuestions(t *testing.T) {
	x := toolsearch.New(tools(t))
	found, asked := 0, 0
	for _, line := range lines(t, "testdata/questions.txt") {
		name, question, _ := strings.Cut(line, " | ")
		own := map[string]bool{}
		for _, w := range word.FindAllString(strings.ReplaceAll(name, "_", " "), -1) {
			own[w] = true
		}
		for _, w := range word.FindAllString(strings.ToLower(question), -1) {
			if own[w] {
				t.Errorf("%q shares %q with %s", question, w, name)
			}
		}
		asked++
		place := -1
		hits := x.Find(question, 20)
		for i, hit := range hits {
			if hit.Name == name {
				place = i
			}
		}
		if place >= 0 && place < 5 {
			found++
			continue
		}
		var first []string
		for _, hit := range hits[:min(5, len(hits))] {
			first = append(first, hit.Name)
		}
		t.Logf("%q finds %s at %d, behind %s", question, name, place+1, strings.Join(first, ", "))
	}
	t.Logf("%d of %d", found, asked)
	if asked != 50 || found < 45 {
		t.Errorf("%d of %d questions find their tool among the first five; want 45 of 50", found, asked)
	}
}

func TestFind(t *testing.T) {
	x := toolsearch.New([]toolsearch.Tool{
		{Name: "readFile", Description: "Reads the content of a file.", Arguments: "path"},
		{Name: "list_folders", Title: "Folders", Description: "What is in a place"},
		{Name: "größe_messen", Description: "Misst die Länge eines Gegenstands"},
		{Name: "convert", Description: "Converts units", Arguments: "celsius fahrenheit"},
		{Name: "a", Description: ""},
		{},
	})
	for query, want := range map[string]string{
		"FILE":               "readFile",
		"files":              "readFile",
		"folder":             "list_folders",
		"directories":        "list_folders", // of like meaning
		"fahren":             "convert",      // a beginning
		"fahrenhiet":         "convert",      // a typing mistake
		"celsius to kelvin":  "convert",
		"Länge":              "größe_messen",
		"open the documents": "readFile",
		"of":                 "readFile", // nothing but words that say nothing
	} {
		hits := x.Find(query, 3)
		if len(hits) == 0 || hits[0].Name != want {
			t.Errorf("%q finds %v, want %s first", query, hits, want)
		}
	}
	for _, query := range []string{"", "   ", "?!", "xyzzy", strings.Repeat("\x00\xff", 10)} {
		if hits := x.Find(query, 3); len(hits) > 0 {
			t.Errorf("%q finds %v", query, hits)
		}
	}
	for _, n := range []int{-1, 0} {
		if hits := x.Find("file", n); len(hits) > 0 {
			t.Errorf("at most %d: %v", n, hits)
		}
	}
	if hits := toolsearch.New(nil).Find("file", 3); len(hits) > 0 {
		t.Errorf("no tools: %v", hits)
	}
}

// Long texts and queries are cut, and do not slow a search down by more than their part counts.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("wörd ", 1<<20)
	x := toolsearch.New([]toolsearch.Tool{{Name: "a", Description: long + "end"}, {Name: "b", Description: "end"}})
	if hits := x.Find("end", 2); len(hits) != 1 || hits[0].Name != "b" {
		t.Errorf("%v", hits)
	}
	if hits := x.Find(long+"end", 2); len(hits) != 1 || hits[0].Name != "a" {
		t.Errorf("%v", hits)
	}
}

func FuzzFind(f *testing.F) {
	f.Add("read a file", "readFile", "Reads")
	f.Add("İstanbul ", "\xff", "ﬀ")
	f.Fuzz(func(t *testing.T, query, name, description string) {
		x := toolsearch.New([]toolsearch.Tool{{Name: name, Description: description}, {Name: "b", Description: name}})
		first := x.Find(query, 5)
		for range 3 {
			if again := x.Find(query, 5); fmt.Sprint(again) != fmt.Sprint(first) {
				t.Fatalf("%v, then %v", first, again)
			}
		}
		for i, hit := range first {
			if !(hit.Score > 0) || i > 0 && hit.Score > first[i-1].Score {
				t.Fatalf("%v", first)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	x := toolsearch.New(tools(b))
	b.ReportAllocs()
	for b.Loop() {
		if len(x.Find("the client was billed twice, give them their money back", 5)) != 5 {
			b.Fatal("too few hits")
		}
	}
}

func BenchmarkNew(b *testing.B) {
	all := tools(b)
	b.ReportAllocs()
	for b.Loop() {
		toolsearch.New(all)
	}
}
