package page

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// The site of the documentation works from the disk: pages fit on every window, axe finds no fault in them, and the search is used by
// the keyboard alone.
func TestSiteOfDocs(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	if out, err := exec.CommandContext(t.Context(), "go", "-C", filepath.Join("..", "..", "internal", "tools"), "run", "./site", "--out", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := browser.New(t)
	root := "file:///" + strings.TrimPrefix(dir, "/") + "/"
	for _, page := range []string{"docs/write-a-server.html", "api/mcp/endpoint.html"} {
		p.GoTo(root + page)
		everyLook(p, func(look string) {
			axe(t, p, page+", "+look)
			fits(t, p, page+", "+look)
		})
	}
	p.Looks(1440, 900, false)
	p.GoTo(root + "docs/errors.html")
	p.Keys("/")
	p.Keys("mcp.AddTool")
	p.Until(`document.querySelector("#results a")?.firstChild.textContent === "mcp.AddTool"`)
	axe(t, p, "with results")
	p.Keys(kb.ArrowDown)
	p.Keys(kb.Enter)
	p.Until(`location.href.endsWith("/api/mcp.html#AddTool") && !!document.querySelector("h3:target")`)
	p.Keys("/")
	p.Keys("zzqx")
	p.Until(`document.querySelector("#results p").textContent === "0 results"`)
	p.Keys(kb.Escape)
	p.Until(`document.querySelector("#results").hidden && document.activeElement === document.querySelector("input")`)
}
