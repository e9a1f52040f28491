package page

import "testing"

// A page that goes while a server asks ends the call: its question gets an answer that cancels, since nobody could give
// one later.
func TestLeave(t *testing.T) {
	p, origin := opened(t, "inspect", "--no-open", "everything")
	p.GoTo(origin + "/s/everything/tools/test_input_required_result_elicitation")
	p.Until(`[...document.querySelectorAll("button")].some((b) => b.textContent === "Call" && !b.disabled)`)
	p.Press("button", "Call")
	p.Until(`!!document.querySelector(".question")`)
	p.GoTo(origin + "/s/everything/tools/test_input_required_result_elicitation")
	p.Reads("The page was loaded again while the server waited for an answer: the call was canceled.")
	p.GoTo(origin + "/wire?q=hop:servers+method:tools/call")
	p.Until(`document.querySelector(".wire-box")?.textContent.match(/test_input_required_result_elicitation/g)?.length === 2`)
}
