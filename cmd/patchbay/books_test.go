package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// booksModel answers the tasks of docs/books.md.
const booksModel = `
rules:
  - when: {results: {sqlite_list_tables: "(?s)books.*loans.*readers"}}
    answer: [text: "The tables are books, loans and readers."]
  - when: {user: Which tables}
    answer: [call: {name: sqlite_list_tables, arguments: {}}]
  - when: {results: {shop_place-order: "159.80 EUR"}}
    answer: [text: "Ordered two Ember Stoves for 159.80 EUR."]
  - when: {user: two stoves}
    answer: [call: {name: shop_place-order, arguments: {customer: cus-1001, product_name: Ember Stove, quantity: 2}}]
  - when: {results: {conjugate_conjugate: ^ate}}
    answer: [text: The past of eat is ate.]
  - when: {user: past of eat}
    answer: [call: {name: conjugate_conjugate, arguments: {verb: eat, tense: past simple, person: 3rd singular}}]
`

// TestBooks runs each command of docs/books.md with the files of the page, and compares what it
// prints. Programs and tests that the page names exist, and each row has one of the three.
func TestBooks(t *testing.T) {
	docs, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(docs, "books.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(text), "\r\n", "\n")
	alone(t)
	scripted(t, modeltest.MustParse(booksModel))
	for _, file := range regexp.MustCompile("(?ms)^`([a-z.]+)`\n```[a-z]*\n(.*?)```").FindAllStringSubmatch(page, -1) {
		if err := os.WriteFile(file[1], []byte(file[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := regexp.MustCompile("^`patchbay (.*)`$")
	link := regexp.MustCompile(`\[([\w-]+)\]\(([\w./-]+)\)`)
	var rows, commands int
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		what, here := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1])
		if here == "Here" {
			continue
		}
		rows++
		if c := command.FindStringSubmatch(here); c != nil {
			commands++
			t.Run(what, func(t *testing.T) {
				o := typed(t, "", words(c[1])...)
				want := strings.Trim(strings.TrimSpace(cells[2]), "`")
				if want == "" || !strings.Contains(o.stdout, want) || o.code != exitOK && o.code != exitRefused {
					t.Errorf("%s\nexit code %d, want %q in\n%s\n%s", c[1], o.code, want, o.stdout, o.stderr)
				}
			})
			continue
		}
		named := link.FindAllStringSubmatch(here, -1)
		if len(named) == 0 {
			t.Errorf("%q has neither a command nor a program nor a test", what)
		}
		for _, l := range named {
			if err := tested(l[1], filepath.Join(docs, filepath.FromSlash(l[2]))); err != nil {
				t.Errorf("%q: %v", what, err)
			}
		}
	}
	if rows < 95 || commands < 25 {
		t.Errorf("the page has only %d rows, %d with a command; the search is broken", rows, commands)
	}
}

// tested reports whether a file has the test of that name, or is a program with a test beside it.
func tested(name, file string) error {
	code, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	switch {
	case (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Example")) && !strings.Contains(string(code), "\nfunc "+name+"("):
		return fmt.Errorf("%s has no test %s", file, name)
	case strings.HasSuffix(file, "main.go"):
		if tests, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*_test.go")); len(tests) == 0 {
			return fmt.Errorf("%s has no test", file)
		}
	}
	return nil
}

// words splits a command line at white space outside of quotes, as a shell does.
func words(line string) (args []string) {
	quotes := strings.NewReplacer(`'`, "", `"`, "")
	for _, w := range regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`).FindAllString(line, -1) {
		if strings.Contains(w, "'") { // a single-quoted part keeps its double quotes
			w = strings.ReplaceAll(w, "'", "")
		} else {
			w = quotes.Replace(w)
		}
		args = append(args, w)
	}
	return args
}
