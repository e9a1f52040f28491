package page

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// ctrl is ctrl with another key.
var ctrl = chromedp.KeyModifiers(chromedp.ModifierCtrl)

// focused waits until a field with a name has the focus.
func focused(p *browser.Person, name string) {
	p.Until(`(() => { const a = document.activeElement; return (a?.getAttribute("aria-label") ?? a?.labels?.[0]?.textContent ?? "").trim().startsWith(` + quoted(name) + `) })()`)
}

// The first result of a tool takes three actions from the opened page: choose it, fill in its argument, call it.
func TestActionsToFirstResult(t *testing.T) {
	p, _ := opened(t, "inspect", "--no-open", "everything")
	p.Until(`document.querySelectorAll("main li a").length > 10`)
	actions := 0
	act := func(do func()) {
		actions++
		do()
	}
	act(func() { p.Do(chromedp.Click(`a[href="/s/everything/tools/echo"]`)) })
	focused(p, "message")
	act(func() { p.Keys("hello") })
	act(func() { p.Keys(kb.Enter, ctrl) })
	p.Until(`document.querySelector("section.result .text, section.result pre")?.textContent.includes("hello")`)
	if actions > 3 {
		t.Errorf("the first result took %d actions, want at most 3", actions)
	}
}

// All works without a mouse: find a tool, fill in its form, call it, answer the question that it asks, read the result,
// and see the call on the wire.
func TestKeyboardAlone(t *testing.T) {
	p, _ := opened(t, "inspect", "--no-open", "everything")
	p.Until(`document.querySelectorAll("main li a").length > 10`)
	focused(p, "Find tools")
	p.Keys("test_elicitation")
	p.Keys(kb.Enter)
	focused(p, "message")
	p.Keys("Who are you?")
	p.Keys(kb.Enter, ctrl)
	focused(p, "username")
	p.Keys("ada")
	p.Keys(kb.Tab)
	focused(p, "email")
	p.Keys("ada@example.com")
	p.Keys(kb.Enter, ctrl)
	p.Reads("Elicitation completed: action=accept")
	p.Reads("ada@example.com")

	p.Keys("gw") // single keys work, since the card with the field is gone
	p.Until(`document.querySelector("main")?.dataset.ready === "wire"`)
	p.Keys("/")
	focused(p, "Filter")
	p.Keys("method:tools/call")
	p.Until(`location.search === "?q=method%3Atools%2Fcall"`)
	p.Until(`document.querySelectorAll(".wire-box [aria-rowindex]").length > 0 && [...document.querySelectorAll(".wire-box [aria-rowindex]")].every(r => r.textContent.includes("tools/call"))`)
	for tabs := 0; !browser.Eval[bool](p, `document.activeElement?.getAttribute("role") === "grid"`); tabs++ {
		if tabs == 10 {
			t.Fatalf("ten times Tab do not lead from the filter to the rows\n%s", p.Sees())
		}
		p.Keys(kb.Tab)
	}
	p.Keys(kb.End)
	p.Until(`!!document.querySelector("[role=row][aria-selected=true]")`)
	p.Keys(kb.Enter)
	p.Until(`document.querySelector("section[aria-label=Details]")?.textContent.includes("test_elicitation")`)
	if said := browser.Eval[string](p, `document.querySelector("[role=row][aria-selected=true]").textContent`); said == "" {
		t.Error("the row of the call has no text")
	}
}

// Enter opens the tool that was found, whose button has the focus then; it does not call it, also while it is held.
func TestEnterCallsNothing(t *testing.T) {
	p, origin := opened(t, "inspect", "--no-open", "everything")
	p.Until(`document.querySelectorAll("main li a").length > 10`)
	focused(p, "Find tools")
	p.Keys("test_simple_text")
	p.Keys(kb.Enter)
	p.Until(`document.activeElement?.textContent.trim() === "Call"`)
	for range 3 {
		p.Keys(kb.Enter, browser.Held)
	}
	p.Reads("The result comes here.")
	p.Keys(kb.Enter)
	ended(p, "ok")
	p.GoTo(origin + "/wire?q=method:tools/call+hop:servers")
	p.Until(`document.querySelectorAll(".wire-box [aria-rowindex]").length === 1`)
}
