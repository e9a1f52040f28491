package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestReplace(t *testing.T) {
	tests := []struct {
		name  string
		text  string
		edits []replacement
		want  string // of the file, or of the error
		fails bool
	}{
		{"one", "a\nb\nc\n", []replacement{{"b", "x", false}}, "a\nx\nc\n", false},
		{"in order", "a\n", []replacement{{"a", "b", false}, {"b", "c", false}}, "c\n", false},
		{"all", "a a\na\n", []replacement{{"a", "b", true}}, "b b\nb\n", false},
		{"not there", "a\n", []replacement{{"a", "b", false}, {"a", "c", false}}, "edit 2: old_text is not in the file", true},
		{"several", "a\nb\na\na\na\na\na\n", []replacement{{"a", "b", false}}, "in the file 6 times, in lines 1, 3, 4, 5, 6 and more", true},
		{"over lines", "a\nb\nc\na\nb\n", []replacement{{"a\nb\n", "", false}}, "2 times, in lines 1, 4;", true},
		{"several in a line", "aXaX\n", []replacement{{"aX", "b", false}}, "in lines 1, 1;", true},
		{"CRLF stays", "a\r\nb\r\nc\r\n", []replacement{{"a\nb", "x\ny\nz", false}}, "x\r\ny\r\nz\r\nc\r\n", false},
		{"CRLF given", "a\r\nb\r\n", []replacement{{"a\r\nb", "x\r\ny", false}}, "x\r\ny\r\n", false},
		{"LF stays", "a\nb\n", []replacement{{"a\r\nb", "x\r\ny", false}}, "x\ny\n", false},
		{"mixed is as written", "a\r\nb\nc\n", []replacement{{"b\n", "x\r\n", false}}, "a\r\nx\r\nc\n", false},
		{"mixed is matched exactly", "a\r\nb\nc\n", []replacement{{"a\nb", "x", false}}, "not in the file", true},
		{"a lone CR stays", "a\rb\r\nc\r\n", []replacement{{"c", "x", false}}, "a\rb\r\nx\r\n", false},
		{"no end", "ab", []replacement{{"b", "x\n", false}}, "ax\n", false},
		{"removed", "a\nb\n", []replacement{{"b\n", "", false}}, "a\n", false},
		{"mark stays", "\uFEFFa\n", []replacement{{"a", "b", false}}, "\uFEFFb\n", false},
		{"too large", strings.Repeat("a", 1000), []replacement{{"a", strings.Repeat("b", 10_000), true}}, "more than 8388608 bytes", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ends := endsOf(tt.text)
			got, err := replace(ends.plain(tt.text), ends, tt.edits)
			if got = ends.restore(got); err != nil {
				got = err.Error()
			}
			if (err != nil) != tt.fails || !tt.fails && got != tt.want || !strings.Contains(got, tt.want) {
				t.Errorf("%.50q becomes %.200q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

// An edit writes nothing on trial or when one of its parts fails, and keeps line ends.
func TestEdit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write(t, path, "one\r\ntwo\r\nthree")
	write(t, filepath.Join(dir, "latin1"), "caf\xe9")
	write(t, filepath.Join(dir, "blob"), "\x00")
	write(t, filepath.Join(dir, "empty"), "")
	s := mcptest.Connect(t, serving(t, Options{Roots: []string{dir}}).mcp, &mcp.Client{Name: "c", Version: "1"}, mcp.V2026_07_28)
	type args = map[string]any
	edit := func(path string, dry bool, edits ...args) (string, bool) {
		t.Helper()
		res, err := s.CallTool(t.Context(), "edit", args{"path": path, "edits": edits, "dry_run": dry})
		if err != nil {
			t.Fatal(err)
		}
		return res.Text(), !res.IsError
	}
	was := "one\r\ntwo\r\nthree"
	same := func() {
		t.Helper()
		if b, _ := os.ReadFile(path); string(b) != was {
			t.Errorf("the file is %q", b)
		}
	}
	want := "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n\\ No newline at end of file\n"
	if got, ok := edit("f", true, args{"old_text": "two", "new_text": "2"}); !ok || got != want+"\ndry run: nothing was written" {
		t.Errorf("dry run = %q, %t; want %q", got, ok, want)
	}
	same()
	for _, e := range [][]args{
		{{"old_text": "two", "new_text": "2"}, {"old_text": "four", "new_text": "4"}},
		{{"old_text": "e", "new_text": "2"}},
		{{"old_text": "two", "new_text": "two"}},
		{{"old_text": "", "new_text": "x"}},
		{},
	} {
		if got, ok := edit("f", false, e...); ok {
			t.Errorf("edit %v = %q, want an error", e, got)
		}
		same()
	}
	if got, ok := edit("f", false, args{"old_text": "two\nthree", "new_text": "2\n3\n"}); !ok {
		t.Error(got)
	}
	was = "one\r\n2\r\n3\r\n"
	same()
	for _, name := range []string{"latin1", "blob", "empty", "nosuch", "."} {
		if got, ok := edit(name, false, args{"old_text": "a", "new_text": "b"}); ok {
			t.Errorf("edit of %s = %q, want an error", name, got)
		}
	}
}
