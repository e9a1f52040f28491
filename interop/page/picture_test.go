package page

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// The README shows the page. go test ./page -run TestPicture -update makes the picture again.
func TestPicture(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "images", "page.png")
	if *update {
		p, origin := opened(t, "up", "--http", "127.0.0.1:0", "-s", "shop", "-s", "everything")
		p.Looks(1440, 720, false)
		p.GoTo(origin + "/s/shop/tools/products")
		focused(p, "category")
		p.Keys("kitchen")
		p.Keys(kb.Enter, ctrl)
		ended(p, "ok")
		p.Press("tab", "structured")
		if err := os.WriteFile(path, p.Picture(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	picture, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if is, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil || is.Width != 1440 || len(picture) > 200_000 {
		t.Errorf("the picture is %d wide and has %d bytes (%v)", is.Width, len(picture), err)
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil || !strings.Contains(string(readme), "(docs/images/page.png)") {
		t.Errorf("the README does not show it (%v)", err)
	}
}
