package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/flags"
)

var update = flag.Bool("update", false, "write the verbs into docs/command-line.md")

const commandLineFile = "../../docs/command-line.md"

// TestCommandLinePage compares the verbs of docs/command-line.md with those of the program.
func TestCommandLinePage(t *testing.T) {
	have, err := os.ReadFile(commandLineFile)
	if err != nil {
		t.Fatal(err)
	}
	want := commandLinePage(t, strings.ReplaceAll(string(have), "\r\n", "\n"))
	if *update {
		if err := os.WriteFile(commandLineFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(have) != want && !*update {
		t.Errorf("%s differs from the verbs; go test ./cmd/patchbay -run TestCommandLinePage -update writes it", commandLineFile)
	}
}

// commandLinePage returns a page with its generated parts renewed: a table of verbs, one of exit codes,
// and a reference.
func commandLinePage(t *testing.T, page string) string {
	t.Helper()
	var table, reference strings.Builder
	table.WriteString("| Verb | What it does |\n|---|---|\n")
	reference.WriteString("\n" + helpServer + "\n\n### Global flags\n" + flagBlock(parserOf(nil).Flags))
	eachVerb(func(v *verb, path string) {
		fmt.Fprintf(&table, "| [%s](#patchbay-%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), v.summary)
		fmt.Fprintf(&reference, "\n### patchbay %s\n\n%s\n\n```text\n%s\n\nUsage: %s\n```\n", path, v.summary, strings.Join(v.examples, "\n"), v.synopsis(path))
		if v.details != "" {
			reference.WriteString("\n" + fenced(v.details) + "\n")
		}
		reference.WriteString(flagBlock(parserOf(v).own))
	})
	page = replaced(t, page, "verbs", table.String())
	page = replaced(t, page, "exits", exitTable())
	return replaced(t, page, "reference", reference.String())
}

// flagBlock returns flags as a code block, or nothing without flags.
func flagBlock(list []*flags.Flag) string {
	rows := flagRows(list)
	if len(rows) == 0 {
		return ""
	}
	width := 0
	for _, r := range rows {
		width = max(width, columns(r.Name))
	}
	out := "\n```text\n"
	for _, r := range rows {
		out += pad(r.Name, width) + "  " + r.About + "\n"
	}
	return out + "```\n"
}

// exitTable returns the exit codes of help as a table.
func exitTable() string {
	out := "| Exit code | Meaning |\n|---|---|\n"
	for _, m := range regexp.MustCompile(`(?m)^ *(\d+)  (.*(?:\n {5}.*)*)`).FindAllStringSubmatch(helpExits, -1) {
		out += "| `" + m[1] + "` | " + strings.Join(strings.Fields(m[2]), " ") + " |\n"
	}
	return out
}

// replaced replaces the text between the marks of a part of a page.
func replaced(t *testing.T, page, part, text string) string {
	t.Helper()
	before, rest, ok := strings.Cut(page, "<!-- "+part+" -->\n")
	_, after, ended := strings.Cut(rest, "<!-- end -->")
	if !ok || !ended {
		t.Fatalf("the page has no part between <!-- %s --> and <!-- end -->", part)
	}
	return before + "<!-- " + part + " -->\n" + text + "<!-- end -->" + after
}

// fenced puts indented lines of a text into code blocks.
func fenced(text string) string {
	var out []string
	code := false
	for _, line := range strings.Split(text, "\n") {
		if indent := strings.HasPrefix(line, "  "); indent != code {
			if indent {
				out = append(out, "", "```text")
			} else {
				out = append(out, "```")
				if line != "" {
					out = append(out, "")
				}
			}
			code = indent
		}
		out = append(out, strings.TrimPrefix(line, "  "))
	}
	if code {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}
