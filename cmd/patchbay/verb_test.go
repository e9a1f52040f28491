package main

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
)

// eachVerb calls do for every verb, including verbs below verbs, with its path.
func eachVerb(do func(v *verb, path string)) {
	var walk func(list []*verb, before string)
	walk = func(list []*verb, before string) {
		for _, v := range list {
			do(v, before+v.name)
			walk(v.verbs, before+v.name+" ")
		}
	}
	walk(verbs, "")
}

// patchbay runs the program and returns its standard output.
func patchbay(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	if code := run(t.Context(), args, strings.NewReader(""), &out, io.Discard); code != exitOK {
		t.Errorf("patchbay %q: exit code %d", args, code)
	}
	return out.String()
}

// TestVerbsAreWhole: each verb has everything that help, completion and the page need, and a
// parser.
func TestVerbsAreWhole(t *testing.T) {
	eachVerb(func(v *verb, path string) {
		if v.name == "" || v.summary == "" || !strings.HasSuffix(v.summary, ".") {
			t.Errorf("%s: the summary is %q, want a sentence", path, v.summary)
		}
		if len(v.examples) == 0 {
			t.Errorf("%s has no example", path)
		}
		if v.command == nil && len(v.verbs) == 0 {
			t.Errorf("%s has neither a command nor verbs below it", path)
		}
		for _, f := range parserOf(v).Flags {
			if f.Help == "" {
				t.Errorf("%s: the flag --%s has no help", path, f.Name)
			}
		}
	})
}

// aroundExample matches the parts of an example that are for the shell.
var aroundExample = regexp.MustCompile(`^TOKEN=\$\(|\)$| (<|>|>>) \S+$`)

// TestExamplesParse parses every example with the flags and arguments of its verb.
func TestExamplesParse(t *testing.T) {
	check := func(path, example string) {
		words, ok := complete.Split(aroundExample.ReplaceAllString(example, ""))
		if !ok || words[0] != "patchbay" {
			t.Errorf("%s: the example %q is not a command line of this program", path, example)
			return
		}
		l := arrange(words[1:])
		if l.of == nil || l.of.command == nil || l.unknown != "" || l.empty != nil {
			t.Errorf("%s: the example %q names no verb, or a flag that it does not have", path, example)
			return
		}
		if err := cmp.Or(l.parser.Read(l.flags), l.parser.Place(l.words)); err != nil {
			t.Errorf("%s: the example %q: %v", path, example, err)
		}
	}
	eachVerb(func(v *verb, path string) {
		for _, e := range v.examples {
			check(path, e)
		}
		if v.command != nil && !slices.ContainsFunc(v.examples, func(e string) bool { return strings.Contains(e, "patchbay "+path) }) {
			t.Errorf("no example of %s is one of it", path)
		}
	})
	for _, e := range overviewExamples {
		check("the overview", e)
	}
}

// trialCmd is a verb that a test adds.
type trialCmd struct {
	Word  string `arg:"" help:"A word."`
	Twice bool   `help:"Print it twice."`
}

func (c *trialCmd) Run(a *app) error {
	a.print(c.Word)
	if c.Twice {
		a.print(c.Word)
	}
	return nil
}

// TestTrialVerb adds a verb by one line in the list. It runs, and is part of the overview, help,
// completion and the page.
func TestTrialVerb(t *testing.T) {
	before := verbs
	t.Cleanup(func() { verbs = before })
	verbs = append(slices.Clone(verbs), &verb{
		name: "trial", summary: "Print a word.", usage: "WORD", examples: []string{"patchbay trial hello --twice"},
		command: func() command { return new(trialCmd) },
	})

	if got := patchbay(t, "trial", "hello", "--twice"); got != "hello\nhello\n" {
		t.Errorf("patchbay trial printed %q", got)
	}
	for where, texts := range map[string][]string{
		patchbay(t):                                         {"\n  trial      Print a word.\n"},
		patchbay(t, "help", "trial"):                        {"\n  patchbay trial hello --twice\n", "\nUsage: patchbay trial WORD\n", "\n  --twice  Print it twice.\n"},
		patchbay(t, complete.Verb, "fish", "tri"):           {"trial\tPrint a word.\n"},
		patchbay(t, complete.Verb, "fish", "trial", "--tw"): {"--twice\tPrint it twice.\n"},
		patchbay(t, complete.Verb, "fish", "help", "tri"):   {"trial\tPrint a word.\n"},
		commandLinePage(t, "<!-- verbs -->\n<!-- end -->\n<!-- exits -->\n<!-- end -->\n<!-- reference -->\n<!-- end -->\n"): {
			"| [trial](#patchbay-trial) | Print a word. |", "### patchbay trial\n", "patchbay trial hello --twice\n", "--twice  Print it twice.",
		},
	} {
		for _, want := range texts {
			if !strings.Contains(where, want) {
				t.Errorf("there is no %q in\n%s", want, where)
			}
		}
	}
	var said strings.Builder
	if code := run(t.Context(), []string{"trial", "x", "-s", "everything"}, strings.NewReader(""), io.Discard, &said); code != exitUsage || !strings.Contains(said.String(), "trial takes no -s") {
		t.Errorf("a server for a verb that takes none: exit code %d, %s", code, said.String())
	}
}

// TestEachVerbHasAScript: a script of testdata runs the program with each verb, as a person does.
func TestEachVerbHasAScript(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var scripts strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts.Write(text)
	}
	eachVerb(func(v *verb, path string) {
		if v.command == nil {
			return
		}
		if ok, err := regexp.MatchString(`(?m)^(exec|exits \d+) .*\bpatchbay `+path+`\b`, scripts.String()); !ok || err != nil {
			t.Errorf("no script runs patchbay %s", path)
		}
	})
}
