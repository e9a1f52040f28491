package page

import (
	"testing"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// The filter of the wire is that of the address, also of one to which the browser goes back.
func TestFilterFollowsAddress(t *testing.T) {
	p, origin := opened(t, "inspect", "--no-open", "everything")
	p.GoTo(origin + "/wire?q=method%3Atools%2F*")
	has := func(filter string) {
		t.Helper()
		p.Until(`document.querySelector("[data-find]")?.value === ` + quoted(filter))
	}
	has("method:tools/*")
	p.Press("link", "Wire")
	has("")
	browser.Eval[bool](p, `(history.back(), true)`)
	has("method:tools/*")
}

// The palette has each screen once.
func TestPaletteHasScreensOnce(t *testing.T) {
	p, _ := opened(t, "inspect", "--no-open", "everything")
	browser.Eval[bool](p, `dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true}))`)
	p.Until(`!!document.querySelector("dialog.palette[open]")`)
	p.Keys("help")
	p.Until(`document.querySelectorAll("dialog.palette [role=option]").length > 0`)
	if n := browser.Eval[int](p, `document.querySelectorAll("dialog.palette [role=option]").length`); n != 1 {
		t.Errorf("the palette has %d matches of help, want the screen", n)
	}
}
