package page

import "testing"

// A result has integers as the server sent them, also those that JavaScript rounds, and its link leads to the call on
// the wire.
func TestExactResult(t *testing.T) {
	p, origin := opened(t, "inspect", "--no-open", "everything")
	p.GoTo(origin + "/s/everything/tools/echo")
	p.Until(`document.activeElement.matches("textarea")`)
	p.Keys(`{"n": 9007199254740993}`)
	p.Press("button", "Call")
	p.Until(`document.querySelector(".result pre.code")?.textContent.includes("9007199254740993")`)
	p.Until(`getComputedStyle(document.querySelector("main > .bar")).display === "flex"`) // no other screen's style
	p.Press("link", "on the wire")
	p.Until(`document.querySelector(".wire-box")?.textContent.includes("tools/call echo")`)
}
