package pagelink

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// maker makes the same link each time.
type maker struct{ over []func() }

func (m *maker) Link(over func()) string {
	m.over = append(m.over, over)
	return "http://127.0.0.1:1/#in=CODE"
}

// A file has the link, for its user alone, until the link is over; those of programs that were killed are removed, and
// others are not.
func TestFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the cache folder of the user cannot be moved")
	}
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	dir := filepath.Join(cache, "patchbay")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * leftAfter)
	for _, name := range []string{"page-old.html", "page-new.html", "other.html"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name != "page-new.html" {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := new(maker)
	path, err := File(m)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `url=http://127.0.0.1:1/#in=CODE"`) {
		t.Errorf("the file is %s, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	for name, want := range map[string]bool{"page-old.html": false, "page-new.html": true, "other.html": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	m.over[0]()
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is there after its link is over")
	}
}

// A link is made by a POST of JSON alone.
func TestHandler(t *testing.T) {
	m := new(maker)
	for _, tt := range []struct {
		method, kind, body string
		status             int
		says               string
	}{
		{"POST", "application/json", `{"file":false}`, 200, `{"link":"http://127.0.0.1:1/#in=CODE"}`},
		{"GET", "application/json", "", 405, "by POST"},
		{"POST", "text/plain", `{"file":false}`, 400, "the body is not"},
		{"POST", "application/json", "", 400, "the body is not"},
		{"POST", "application/json", `{"file":"` + strings.Repeat("x", maxBody) + `"}`, 400, "the body is not"},
	} {
		r := httptest.NewRequest(tt.method, Path, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.kind)
		w := httptest.NewRecorder()
		Handler(m).ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s %s: HTTP %d %s", tt.method, tt.kind, w.Code, w.Body)
		}
	}
	if len(m.over) != 1 {
		t.Errorf("%d links were made", len(m.over))
	}
}

// Without a folder for the file, the warning says what that prevents, and a person gets the link.
func TestShowWithoutHome(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the cache folder of the user cannot be moved")
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	lines, warning := Show(t.Context(), new(maker), true)
	if warning == nil || !strings.HasPrefix(warning.Error(), "the browser is not opened: ") || !strings.Contains(strings.Join(lines, "\n"), "http://127.0.0.1:1/#in=CODE") {
		t.Errorf("Show = %q, %v", lines, warning)
	}
}
