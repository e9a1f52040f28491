package page

import (
	"testing"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// A person opens a file of --record like the wire, cuts it with the filter, and sees what other rules would do with its calls.
func TestRecordings(t *testing.T) {
	p, origin := opened(t, "up", "--http", "127.0.0.1:0", "--record", "frames", "-s", "everything")
	p.GoTo(origin + "/s/everything/tools/echo")
	begun["/s/everything/tools/echo"](p)
	p.GoTo(origin + "/recordings")
	const link = `document.querySelector("main tbody tr:nth-child(2) th a")`
	p.Until(`!!` + link)
	p.Until(`!!document.querySelector("button[aria-label^='Copy the command that mocks trace-']")`)
	if name := browser.Eval[string](p, link+`.textContent`); name == "" {
		t.Error("the file has no name")
	}
	browser.Eval[bool](p, link+`.click(), true`)
	p.Reads("Show the wire now")
	browser.Eval[bool](p, `document.querySelector("[data-find]").focus(), true`)
	p.Keys("method:tools/call")
	p.Until(`[...document.querySelectorAll(".wire-box [role=row]")].length > 0 && [...document.querySelectorAll(".wire-box [role=row]")].every(r => r.textContent.includes("tools/call"))`)
	p.Until(`/file=trace-/.test(document.querySelector("a[download]").href) && /tools%2Fcall/.test(document.querySelector("a[download]").href)`)
	p.Until(`/file=trace-/.test(location.search)`)
	browser.Eval[bool](p, `document.querySelector(".wire-box [role=row]").click(), true`)
	p.Until(`document.querySelector(".wire-detail pre")?.textContent.includes("hello")`)
	p.GoTo(origin + "/recordings")
	p.Until(`!!` + link + ` && !!document.querySelector("form textarea")`)
	browser.Eval[bool](p, `(() => { const s = document.querySelector("form select"); s.selectedIndex = 1; s.dispatchEvent(new Event("input", {bubbles: true})); s.dispatchEvent(new Event("change", {bubbles: true})); return true })()`)
	p.Write("Policy, as in its file", "rules: [{name: nobody, when: 'name == \"echo\"', effect: deny}]")
	p.Press("button", "Decide")
	p.Reads("! refused")
}
