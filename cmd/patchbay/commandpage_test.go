package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
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

// commandLinePage returns a page with its two generated parts about verbs renewed: a table and a
// reference.
func commandLinePage(t *testing.T, page string) string {
	t.Helper()
	var table, reference strings.Builder
	table.WriteString("| Verb | What it does |\n|---|---|\n")
	reference.WriteString("\n" + helpServer + "\n")
	eachVerb(func(v *verb, path string) {
		fmt.Fprintf(&table, "| [%s](#patchbay-%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), v.summary)
		fmt.Fprintf(&reference, "\n### patchbay %s\n\n%s\n\n```\n%s\n\nUsage: %s\n```\n", path, v.summary, strings.Join(v.examples, "\n"), v.synopsis(path))
		if v.details != "" {
			reference.WriteString("\n" + fenced(v.details) + "\n")
		}
		rows := flagRows(parserOf(v).own)
		if len(rows) == 0 {
			return
		}
		width := 0
		for _, r := range rows {
			width = max(width, columns(r.Name))
		}
		reference.WriteString("\n```\n")
		for _, r := range rows {
			reference.WriteString(pad(r.Name, width) + "  " + r.About + "\n")
		}
		reference.WriteString("```\n")
	})
	page = replaced(t, page, "verbs", table.String())
	return replaced(t, page, "reference", reference.String())
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
				out = append(out, "", "```")
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
