package page

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// The pages show the page, in pictures that this test can make again: go test ./page -run TestPicture -update. Browsers draw differently, so
// their bytes are not compared.
func TestPicture(t *testing.T) {
	root := filepath.Join("..", "..")
	p, origin := opened(t, "up", "--http", "127.0.0.1:0", "-s", "shop", "-s", "everything")
	pictured := func(name, page string) {
		t.Helper()
		made, path := p.Picture(), filepath.Join(root, "docs", "images", name)
		if *update {
			if err := os.WriteFile(path, made, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, picture := range [][]byte{made, kept} {
			if is, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil || is.Width != 1440 {
				t.Errorf("%s is %d wide (%v)", name, is.Width, err)
			}
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
		if err != nil || !strings.Contains(string(text), "images/"+name+")") {
			t.Errorf("%s does not show %s (%v)", page, name, err)
		}
	}
	p.Looks(1440, 700, false)
	p.GoTo(origin + "/s/shop/tools/products")
	focused(p, "category")
	p.Keys("kitchen")
	p.Keys(kb.Enter, ctrl)
	ended(p, "ok")
	p.Press("tab", "structured")
	pictured("page.png", "README.md")

	p.GoTo(origin + "/wire")
	const call = `[...document.querySelectorAll(".wire-box [role=row][id]")].find((row) => row.textContent.includes("tools/call"))`
	p.Until("!!" + call)
	browser.Eval[bool](p, call+".click(), true")
	p.Until(`document.querySelector(".wire-detail h2")?.textContent.includes("tools/call")`)
	pictured("wire.png", "docs/inspector.md")
}
