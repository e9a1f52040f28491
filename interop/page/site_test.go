package page

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// The site of the documentation works from the disk, on every window, by the keyboard alone, and without scripts.
func TestSiteOfDocs(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	if out, err := exec.CommandContext(t.Context(), "go", "-C", filepath.Join("..", "..", "internal", "tools"), "run", "./site", "--out", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	root := "file:///" + strings.TrimPrefix(dir, "/") + "/"
	t.Run("looks", func(t *testing.T) { siteLooks(t, root, dir) })
	t.Run("keyboard", func(t *testing.T) { siteByKeyboard(t, root) })
	t.Run("no scripts", func(t *testing.T) { siteWithoutScripts(t, root) })
}

// siteLooks sees that pages fit on a window and that axe finds no fault in them, wide and narrow, in light and dark. The short form looks at a page
// of each kind, the long form at all.
func siteLooks(t *testing.T, root, dir string) {
	pages := []string{"index.html", "docs/host.html", "docs/glossary.html", "api/mcp/endpoint.html", "examples/programs-2.html"}
	if long.On() {
		pages = nil
		err := fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(name, ".html") {
				pages = append(pages, name)
			}
			return err
		})
		if err != nil || len(pages) < 120 {
			t.Fatalf("%d pages (error %v), want at least 120", len(pages), err)
		}
	}
	p := browser.New(t)
	for _, page := range pages {
		p.GoTo(root + page)
		for _, dark := range []bool{false, true} {
			for _, width := range []int64{320, 1280} {
				p.Looks(width, 800, dark)
				where := fmt.Sprintf("%s, %d wide, dark: %v", page, width, dark)
				fits(t, p, where)
				// After a frame, the page has seen what scrolls.
				browser.Eval[bool](p, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
				axe(t, p, where)
			}
		}
	}
}

// siteByKeyboard uses the link to the text, the search and its results, and code that scrolls.
func siteByKeyboard(t *testing.T, root string) {
	p := browser.New(t)
	p.Looks(1440, 900, false)
	p.GoTo(root + "docs/errors.html")
	p.Keys(kb.Tab)
	p.Until(`document.activeElement.className === "skip" && document.activeElement.getBoundingClientRect().left >= 0`)
	p.Until(`getComputedStyle(document.activeElement).outlineStyle === "solid"`)
	p.Keys(kb.Enter)
	p.Until(`document.activeElement.id === "main"`)
	p.Keys("/")
	p.Keys("mcp.AddTool")
	p.Until(`document.querySelector("#results a")?.firstChild.textContent === "mcp.AddTool"`)
	axe(t, p, "with results")
	p.Keys(kb.ArrowDown)
	p.Keys(kb.Enter)
	p.Until(`location.pathname.includes("/api/mcp") && location.hash === "#AddTool" && !!document.querySelector("h3:target")`)
	p.Keys("/")
	p.Keys("zzqx")
	p.Until(`document.querySelector("#results p").textContent === "0 results"`)
	p.Keys(kb.Escape)
	p.Until(`document.querySelector("#results").hidden && document.activeElement === document.querySelector("input")`)
	// The script adds the pages of the section, and the headings of a page.
	p.Until(`document.querySelector("#contents [aria-current]")?.textContent === "mcp" && document.querySelectorAll("#contents [aria-current]").length === 1`)
	p.Press("link", "auth")
	p.Until(`location.pathname.endsWith("/api/auth.html") && document.querySelector("#contents [aria-current=page]")?.textContent === "auth"`)
	p.Press("link", "auth/login")
	p.Until(`location.pathname.endsWith("/api/auth/login.html") && !!document.querySelector(".heads a[href='#Device']")`)
	p.Press("link", "Guides")
	p.Until(`location.hash === "#guides" && !!document.querySelector("h2:target > a[href='#guides']")`)
	p.Looks(320, 800, false)
	p.GoTo(root + "docs/gateway.html")
	p.Until(`document.querySelector("pre").tabIndex === 0`) // its line is too wide
	p.Looks(1440, 900, false)
	p.Until(`document.querySelector("pre").tabIndex === -1`)
}

// siteWithoutScripts reads pages that have their text and navigation, and nothing that does not work.
func siteWithoutScripts(t *testing.T, root string) {
	p := browser.New(t)
	p.Do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return chromedp.Void{}, err
	})
	p.GoTo(root + "api/mcp.html")
	p.Reads("AddTool adds a tool that is a Go function")
	if browser.Eval[bool](p, `!!document.querySelector("form, input, button")`) {
		t.Error("the page has a search without a script")
	}
	p.Press("link", "mcp, part 2 →")
	p.Reads("Types, continued")
	p.Press("link", "Guides")
	p.Press("link", "Policy")
	p.Reads("What a caller may do")
}
