package attach

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
)

// inFolder writes files into a new folder, which becomes the working folder and the home.
func inFolder(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFiles(t *testing.T) {
	inFolder(t, map[string]string{"note.txt": "a note", "a b/c.md": "spaces", "odd.": "a dot", "pic.png": "\x89PNG\r\n\x1a\n and so on", "raw": "\xff\xfe\x00",
		"long": strings.Repeat("x", maxText+1), "LICENSE": "free", "wide.txt": "\xff\xfe\xfc\x00x\x00"})
	for _, tt := range []struct {
		text  string
		parts []string // the beginnings of texts, and the types of media
		note  string   // in the notes
		err   string
	}{
		{text: "What does @note.txt say?", parts: []string{"\n\n[file \"note.txt\"]\na note"}, note: "attached note.txt, 6 "},
		{text: "@./note.txt and @~/note.txt, (@note.txt).", parts: []string{"\n\n[file \"./note.txt\"]", "\n\n[file \"~/note.txt\"]", "\n\n[file \"note.txt\"]"}},
		{text: "@note.txt @note.txt", parts: []string{"\n\n[file \"note.txt\"]"}},
		{text: `see @"a b/c.md", please`, parts: []string{"\n\n[file \"a b/c.md\"]\nspaces"}},
		{text: "see @odd.", parts: []string{"\n\n[file \"odd.\"]\na dot"}},
		{text: "@LICENSE", parts: []string{"\n\n[file \"LICENSE\"]\nfree"}},
		{text: "@pic.png!", parts: []string{"image/png"}},
		{text: "@s:uri.txt is of a server, ada@note.txt is an address, @ada is a person, @ alone and @"},
		{text: "@./gone.txt", note: `"./gone.txt" does not exist`},
		{text: "@gone.md.", note: `"gone.md" does not exist`},
		{text: `@"a b"`, parts: []string{"\n\n[folder \"a b\"]\nc.md  6 bytes\n"}, note: "attached the names in a b: 1"},
		{text: "@wide.txt", parts: []string{"\n\n[file \"wide.txt\"]\nüx"}},
		{text: "@raw", err: "raw is neither UTF-8 text nor a picture"},
		{text: "@long", err: "at most"},
	} {
		parts, notes, err := Files(t.Context(), &Message{Text: tt.text, Servers: []string{"s"}, Model: model.Info{Images: true}})
		var got []string
		for _, p := range parts {
			if p.Media != nil {
				got = append(got, p.Media.MIME)
			} else {
				got = append(got, p.Text)
			}
		}
		if !slices.EqualFunc(got, tt.parts, strings.HasPrefix) || !strings.Contains(strings.Join(notes, "\n"), tt.note) || (tt.parts == nil && tt.note == "") != (notes == nil) ||
			(err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("Files(%q) = %q, %q, %v; want %q, %q, %q", tt.text, got, notes, err, tt.parts, tt.note, tt.err)
		}
	}
	big, err := os.Create("big")
	if err != nil {
		t.Fatal(err)
	}
	defer big.Close()
	if err := big.Truncate(maxFile + 1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Files(t.Context(), &Message{Text: "@big"}); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a big file: %v", err)
	}
}

func TestComplete(t *testing.T) {
	inFolder(t, map[string]string{"note.txt": "", "notes/x": "", "a b": "", ".hidden": ""})
	for path, want := range map[string][]string{"./": {"./note.txt", "./notes/"}, "./no": {"./note.txt", "./notes/"}, "~/notes/": {"~/notes/x"}, "./.h": {"./.hidden"}, "no": nil, "./gone/": nil} {
		if got := Complete(path); !slices.Equal(got, want) {
			t.Errorf("Complete(%q) = %q, want %q", path, got, want)
		}
	}
}
