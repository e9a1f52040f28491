package inspector

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/health"
)

// The document names files that exist, and is the same below every screen.
func TestDocument(t *testing.T) {
	p := &Page{Title: "mcp.json", Report: func() *health.Report { return new(health.Report) }}
	ask := visit(t, p)
	get := func(path string) *httptest.ResponseRecorder { return ask(http.MethodGet, path, "") }
	page := get("/").Body.String()
	if other := get("/s/db/tools/query").Body.String(); other != page || !strings.Contains(page, `<div id="page">`) {
		t.Errorf("the document of a screen is\n%s, not\n%s", other, page)
	}
	names := regexp.MustCompile(`/assets/[\w.-]+`).FindAllString(page, -1)
	if len(names) != 2 {
		t.Errorf("the document has the assets %q", names)
	}
	for _, name := range names {
		if w := get(name); w.Code != http.StatusOK || w.Body.Len() == 0 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: HTTP %d, %d bytes, %v", name, w.Code, w.Body.Len(), w.Header())
		}
	}
	for _, path := range []string{"/favicon.ico", "/token", "/wires", "/assets/index.html", "/ui/nothing"} {
		if w := get(path); w.Code != http.StatusNotFound {
			t.Errorf("%s: HTTP %d", path, w.Code)
		}
	}
}

// The program knows the paths of the screens.
func TestScreensAreKnown(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("ui", "screens.ts"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^\t\{ path: "(\w*)"`).FindAllSubmatch(text, -1) {
		listed[string(found[1])] = true
	}
	if !maps.Equal(listed, screens) {
		t.Errorf("ui/screens.ts has the paths %v, the program %v", listed, screens)
	}
}
