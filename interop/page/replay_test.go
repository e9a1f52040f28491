package page

import (
	"testing"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// A person sends a call again that changes something: nothing is sent before they have confirmed it, with its tool and
// arguments before them, and then they see what differs. A tool that only reads is sent at once.
func TestReplay(t *testing.T) {
	p, origin := opened(t, "up", "--http", "127.0.0.1:0", "-s", "shop", "-s", "everything")
	p.Looks(1440, 900, false)
	wire := func(filter string) {
		t.Helper()
		p.GoTo(origin + "/wire?q=hop:clients+method:tools/call+target:" + filter)
		p.Until(`!!document.querySelector(".wire-box [role=row][id]")`)
		browser.Eval[bool](p, `document.querySelector(".wire-box [role=row][id]").click(), true`)
		p.Until(`document.querySelector(".wire-detail h2")?.textContent.includes("tools/call")`)
		p.Press("button", "Replay")
	}
	p.GoTo(origin + "/s/shop/tools/process-files")
	p.Until(`!!document.querySelector("section.call button.main:enabled")`)
	p.Press("button", "Call")
	p.Until(`!!document.querySelector("section.result .status.ok")`)
	wire("process-files")
	p.Reads("Confirm each that is sent again")
	p.Reads("shop/process-files")
	everyLook(p, func(look string) {
		fits(t, p, "before the replay, "+look)
		axe(t, p, "before the replay, "+look)
	})
	p.Looks(1440, 900, false)
	p.Press("button", "Replay")
	p.Reads("nobody confirmed the call")
	p.Reads("0 same, 0 differ, 0 skipped")
	p.Press("button", "Close")
	p.Press("button", "Replay")
	p.Until(`!!document.querySelector(".wire-detail input[type=checkbox]")`)
	browser.Eval[bool](p, `document.querySelector(".wire-detail input[type=checkbox]").click(), true`)
	p.Press("button", "Replay")
	p.Reads("0 same, 1 differ, 0 skipped")
	p.Reads("! differs")
	everyLook(p, func(look string) {
		fits(t, p, "after the replay, "+look)
		axe(t, p, "after the replay, "+look)
	})
	p.Looks(1440, 900, false)

	p.GoTo(origin + "/s/everything/tools/echo")
	begun["/s/everything/tools/echo"](p)
	wire("echo")
	p.Reads("1 same, 0 differ, 0 skipped")
	p.GoTo(origin + "/wire?q=hop:clients+method:tools/call+target:echo")
	p.Until(`document.querySelectorAll(".wire-box [role=row][id]").length > 1`) // the replay is on the wire too
	p.Press("button", "Replay these rows")
	p.Reads("2 same, 0 differ, 0 skipped")
}
