package chat

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEditor(t *testing.T) {
	tests := []struct {
		name, keys, want string
		at               int
	}{
		{"words", "one space two ctrl+w X", "one X", 5},
		{"in the middle", "ab left X", "aXb", 2},
		{"lines", "a ctrl+j b up home X", "Xa\nb", 1},
		{"rest of line", "abc ctrl+a right ctrl+k", "a", 1},
		{"join lines", "a ctrl+j b up end ctrl+k", "ab", 1},
		{"emoji is one letter", "x 👩\u200d🚀 left X", "xX👩\u200d🚀", 2},
		{"accent joins", "e \u0301 backspace", "", 0},
		{"by words", "one_two space three alt+b alt+b X", "one_Xtwo three", 5},
	}
	for _, tt := range tests {
		var e editor
		for _, k := range strings.Split(tt.keys, " ") {
			switch {
			case strings.Contains(k, "+"), slices.Contains([]string{"space", "left", "right", "home", "end", "up", "backspace"}, k):
				key := keyOf(k)
				if k == "up" {
					e.vertical(-1, 80)
				} else {
					e.key(key)
				}
			default:
				e.insert(k)
			}
		}
		if got := e.String(); got != tt.want || e.at != tt.at {
			t.Errorf("%s: %q with the cursor at %d, want %q at %d", tt.name, got, e.at, tt.want, tt.at)
		}
	}
}

// A key costs little in a long text, which is not split into letters again.
func TestEditorLongText(t *testing.T) {
	var e editor
	e.insert(strings.Repeat("a long line of text\n", 40_000))
	e.insert("e") // makes room for more letters
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e.insert("\u0301")
	e.insert("x")
	e.key(keyOf("backspace"))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("two letters and a backspace allocate %d bytes", n)
	}
	if got := e.text[len(e.text)-1]; got != "e\u0301" || e.at != len(e.text) {
		t.Errorf("the last letter is %q with the cursor at %d of %d", got, e.at, len(e.text))
	}
}

func TestEditorPaste(t *testing.T) {
	var e editor
	e.insert("a\r\nb\x1b[31m\x00\tc\xff")
	if got, want := e.String(), "a\nb[31m\tc\ufffd"; got != want {
		t.Errorf("what was pasted is %q, want %q", got, want)
	}
	one := editor{one: true}
	one.insert("a\nb\n")
	if got := one.String(); got != "a b" {
		t.Errorf("a line is %q, want %q", got, "a b")
	}
}

// FuzzEditor wants the cursor on the screen, and lines within it, after any input.
func FuzzEditor(f *testing.F) {
	f.Add("hello 日本語\n👩\u200d🚀", 10, "left up backspace")
	f.Fuzz(func(t *testing.T, text string, width int, keys string) {
		width = 2 + max(0, width%100)
		var e editor
		e.insert(text)
		for _, k := range strings.Fields(keys) {
			switch k {
			case "up":
				e.vertical(-1, width)
			case "down":
				e.vertical(1, width)
			default:
				e.key(keyOf(k))
			}
			lines, x, y := e.view(width, 5)
			if len(lines) > 5 || y < 0 || y >= len(lines) || x < 0 || x > width {
				t.Fatalf("the cursor is at %d,%d of %d lines of %d columns", x, y, len(lines), width)
			}
			if e.at < 0 || e.at > len(e.text) {
				t.Fatalf("the cursor is at %d of %d", e.at, len(e.text))
			}
		}
	})
}

func TestSplit(t *testing.T) {
	tests := []struct {
		line string
		want []string
	}{
		{"", nil},
		{"a b  c", []string{"a", "b", "c"}},
		{`a='b c' "d e" f\ g ''`, []string{"a=b c", "d e", "f g", ""}},
		{`x:={"a": [1, 2], "b": "c d"} y=1`, []string{`x:={"a": [1, 2], "b": "c d"}`, "y=1"}},
		{`{"a": "it's"}`, []string{`{"a": "it's"}`}},
	}
	for _, tt := range tests {
		got, err := split(tt.line)
		if err != nil {
			t.Errorf("split(%q): %v", tt.line, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("split(%q) (-want +got):\n%s", tt.line, diff)
		}
	}
	if _, err := split(`a "b`); err == nil {
		t.Error("a quote that is not closed is no error")
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "history")
	var h history
	h.open(path)
	for _, text := range []string{"one", "two\nlines", "two\nlines", "three"} {
		if err := h.add(text); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v (%v), want it for its owner alone", info.Mode(), err)
	}
	var again history
	again.open(path)
	if diff := cmp.Diff([]string{"one", "two\nlines", "three"}, again.said); diff != "" {
		t.Errorf("what was kept (-want +got):\n%s", diff)
	}
	if text, ok := again.move(-1, "draft"); !ok || text != "three" {
		t.Errorf("the last one is %q", text)
	}
	if text, ok := again.move(1, "three"); !ok || text != "draft" {
		t.Errorf("what was being written is %q", text)
	}
	for range 3 * maxHistory {
		if err := again.add(strings.Repeat("x", len(again.said)%7+1)); err != nil {
			t.Fatal(err)
		}
	}
	var long history
	long.open(path)
	if n := len(long.said); n != maxHistory {
		t.Errorf("%d are remembered, want %d", n, maxHistory)
	}
	data, err := os.ReadFile(path)
	if n := strings.Count(string(data), "\n"); err != nil || n > 2*maxHistory {
		t.Errorf("the file has %d lines (%v)", n, err)
	}
}

// TestLongHistory reads the end of a file that is too long, and shortens it.
func TestLongHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	line := `"` + strings.Repeat("x", maxSaid-10) + `"` + "\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 5<<20/len(line))+`"the last"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var h history
	h.open(path)
	if n := len(h.said); n < 200 || n > maxHistory || h.said[n-1] != "the last" || len(h.said[0]) != maxSaid-10 {
		t.Fatalf("%d are remembered", n)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > maxHistoryBytes {
		t.Errorf("the file has %d bytes (%v)", info.Size(), err)
	}
	if err := h.add("another"); err != nil {
		t.Fatal(err)
	}
	var again history
	again.open(path)
	if n := len(again.said); n != len(h.said) || again.said[n-1] != "another" {
		t.Errorf("%d are remembered then, want %d", n, len(h.said))
	}
}
