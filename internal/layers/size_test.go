package layers

import (
	"bytes"
	"os"
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
