package screen

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what is rendered into testdata/markdown")

// TestMarkdown renders each file of testdata/markdown with and without colour. In the files an
// escape sequence is written as ⟦style⟧.
func TestMarkdown(t *testing.T) {
	files, err := filepath.Glob("testdata/markdown/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, error %v", files, err)
	}
	shown := strings.NewReplacer("\x1b[0m", "⟦⟧", "\x1b[", "⟦", "m\x00", "⟧")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ar := txtar.Parse(data)
			in := string(ar.Files[0].Data)
			got := []txtar.File{ar.Files[0]}
			for _, name := range []string{"color", "plain"} {
				text := Markdown(in, 40, name == "color")
				for _, l := range strings.Split(text, "\n") {
					if Columns(Unpainted(l)) > 40 {
						t.Errorf("%s: a line of %d columns: %q", name, Columns(Unpainted(l)), l)
					}
				}
				text = sgr().ReplaceAllStringFunc(text, func(s string) string { return strings.TrimSuffix(s, "m") + "m\x00" })
				text = shown.Replace(strings.ReplaceAll(text, "\x1b[0m\x00", "\x1b[0m"))
				got = append(got, txtar.File{Name: name, Data: []byte(text)})
			}
			out := txtar.Format(&txtar.Archive{Comment: ar.Comment, Files: got})
			if *update {
				if err := os.WriteFile(file, out, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(data), string(out)); diff != "" {
				t.Errorf("%s (-want +got); -update writes it:\n%s", file, diff)
			}
		})
	}
}

func TestIsMarkdown(t *testing.T) {
	tests := []struct {
		text string
		want bool
	}{
		{"", false},
		{"just text, with 2 * 3 * 4", false},
		{"# Title\n\nText with **bold**.", true},
		{"```\ncode\n```", true},
		{"| a | b |\n|---|---|\n| 1 | 2 |", true},
		{"- one\n- two", false},
		{"- `one`\n- `two`", true},
		{"total 4\n-rw-r--r-- 1 root root 12 notes.txt", false},
		{"# a comment\nkey: value\n# another\nlist:\n- a\n- b", false},
		{"#!/bin/sh\n# run it\nx=$(ls)\n", false},
		{`{"a": "**b**", "c": "` + "`d`" + `"}`, true}, // JSON is recognized first
	}
	for _, tt := range tests {
		if got := IsMarkdown(tt.text); got != tt.want {
			t.Errorf("IsMarkdown(%q) = %v, want %v", tt.text, got, tt.want)
		}
	}
}

// FuzzMarkdown wants every letter and digit to survive, and no escape sequences but those for
// colour.
func FuzzMarkdown(f *testing.F) {
	data, err := os.ReadFile("testdata/markdown/tour.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(txtar.Parse(data).Files[0].Data), 40)
	f.Add("a *b **c _d_** e*\n|a|\n|-|\n|x\\|y", 3)
	f.Add("~~~\n```\n~~~\nx\n===\n1) y\n   z", 0)
	f.Fuzz(func(t *testing.T, in string, width int) {
		in = Visible(in)
		width = max(0, width%300)
		for _, color := range []bool{false, true} {
			out := Markdown(in, width, color)
			bare := Unpainted(out)
			if strings.Contains(bare, "\x1b") {
				t.Fatalf("Markdown(%q) = %q, with more than colour in it", in, out)
			}
			if got, want := lettersOf(bare), lettersOf(in); got != want {
				// The word for an image is ours.
				if !strings.Contains(in, "![") {
					t.Fatalf("Markdown(%q) = %q, which has the letters %q, want %q", in, bare, got, want)
				}
			}
			if again := Markdown(in, width, color); again != out {
				t.Fatalf("Markdown(%q) differs from time to time", in)
			}
		}
	})
}

// lettersOf returns the letters and digits of a text, sorted.
func lettersOf(s string) string {
	var out []rune
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return string(out)
}
