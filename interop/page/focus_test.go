package page

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
	"github.com/patchbay-dev/patchbay/mcp"
)

// on is a button or another control that has the focus, by its text.
func on(p *browser.Person, text string) {
	p.Until(`document.activeElement?.textContent.trim() === ` + quoted(text))
}

// pressed moves the focus to a button and presses it with a key.
func pressed(p *browser.Person, button string) {
	find := `[...document.querySelectorAll("button")].find((b) => (b.ariaLabel ?? b.textContent.trim()) === ` + quoted(button) + ` && !b.disabled)`
	p.Until(`((b) => !!b && (b.focus(), document.activeElement === b))(` + find + `)`) // one in a dialog takes no focus before that is shown
	p.Keys(kb.Enter)
}

// A control that has the focus may go when it is pressed: the focus does not go with it to nowhere.
func TestFocusStays(t *testing.T) {
	p, origin := opened(t, "up", "--http", "127.0.0.1:0", "--gateway", gatewayFile(t), "-s", "everything", "-s", "shop")
	show := func(path string) {
		t.Helper()
		p.GoTo(origin + path)
		p.Until(`!!document.querySelector("[data-ready]")`)
	}
	show("/")
	pressed(p, "Disable shop")
	p.Keys(kb.Enter)
	on(p, "Enable")
	p.Keys(kb.Enter)
	on(p, "Disable")

	show("/s/everything/tools/slow_compute")
	fill(p, "seconds", "600")
	p.Keys(kb.Enter, ctrl)
	pressed(p, "Cancel")
	p.Until(`document.activeElement.matches(".row.buttons")`)
	p.Keys(kb.Tab)
	on(p, "Call")

	show("/s/everything/tools/echo")
	fill(p, "message", "see https://example.com/ for more")
	p.Keys(kb.Enter, ctrl)
	ended(p, "ok")
	pressed(p, "https://example.com/ ↗")
	pressed(p, "Stay here")
	on(p, "https://example.com/ ↗")

	show("/policy?server=everything&tool=echo")
	pressed(p, "Explain")
	p.Reads("Allowed")
	on(p, "Explain")

	show("/wire?q=hop:servers")
	for _, leave := range []string{"Escape", "Close"} {
		p.Until(`document.querySelectorAll(".wire-box [aria-rowindex]").length > 0`)
		browser.Eval[bool](p, `(document.querySelector("[role=grid]").focus(), true)`)
		p.Keys(kb.End)
		p.Keys(kb.Enter)
		p.Until(`!!document.querySelector("section[aria-label=Details] [role=tab]")`)
		if leave == "Escape" {
			browser.Eval[bool](p, `(document.querySelector("section[aria-label=Details] [role=tab]").focus(), true)`)
			p.Keys(kb.Escape)
		} else {
			pressed(p, "Close")
		}
		p.Until(`!document.querySelector("section[aria-label=Details]") && document.activeElement.matches("[role=grid]")`)
	}
}

// A question takes the focus on the screen of its call, where the person waits for it. On others it takes it from nobody:
// what somebody types would become an answer to another server.
func TestQuestionsTakeNoFocus(t *testing.T) {
	p, _ := opened(t, "inspect", "--no-open", "everything")
	find(p, "test_elicitation", "test_elicitation")
	fill(p, "message", "Who are you?")
	p.Press("button", "Call")
	focused(p, "username")
	browser.Eval[bool](p, `(() => { const a = [...document.querySelectorAll("header a")].find((a) => a.textContent.startsWith("Inbox")); a.focus(); a.click(); return true })()`)
	p.Until(`document.querySelector("main").dataset.ready === "inbox" && !!document.querySelector("main .question .fields")`)
	if at := browser.Eval[string](p, `document.activeElement.textContent`); at != "Inbox (1)" {
		t.Errorf("the focus is at %q, want at the link", at)
	}
}

// A question has the focus, but none of its buttons: a key that is pressed just then does not answer it.
func TestKeyAnswersNothing(t *testing.T) {
	srv := &mcp.Server{Name: "asks"}
	mcp.AddTool(srv, mcp.Tool{Name: "pay"}, func(ctx context.Context, _ struct{}) (string, error) {
		return "paid", mcp.ElicitURL(ctx, "Pay here.", "http://localhost:9/pay")
	})
	upstream := httptest.NewServer(srv)
	t.Cleanup(func() { upstream.CloseClientConnections(); upstream.Close() })
	p, _ := opened(t, "inspect", "--no-open", upstream.URL)
	pressed(p, "Call")
	p.Until(`!!document.activeElement?.matches(".question")`)
	p.Keys(kb.Enter + " ")
	p.Press("button", "Decline")
	ended(p, "tool error")
}
