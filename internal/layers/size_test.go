package layers

import (
	"bytes"
	"os"
	"path"
	"strings"
	"testing"
)

// maxLines bounds a Go file, test or not: one that grows past it holds a second idea.
const maxLines = 670

func TestLargestFile(t *testing.T) {
	for _, path := range goFiles(t) {
		text, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, more than %d: look for its second idea", path, n, maxLines)
		}
	}
}

// maxProgram bounds the lines of package main without tests: a verb calls packages that do its work.
const maxProgram = 11_000

func TestProgramIsVerbs(t *testing.T) {
	lines := 0
	for _, name := range goFiles(t) {
		if path.Dir(name) != "cmd/patchbay" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
	}
	if lines == 0 || lines > maxProgram {
		t.Errorf("package main of patchbay has %d lines, more than %d: move what is not a verb to cmd/patchbay/internal", lines, maxProgram)
	}
}
