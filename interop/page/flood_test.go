package page

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/inspector"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/interop/internal/browser"
	"github.com/patchbay-dev/patchbay/trace"
)

// Of more frames than a page can use those that are left out are loaded: all that fit a filter are shown, and the list has no
// gap when somebody scrolls up, also if a row from before is answered in between.
func TestWireOfTooManyFrames(t *testing.T) {
	frames := new(inspector.Frames)
	page := &inspector.Page{Title: "flood", Frames: frames, Local: &auth.Principal{ID: "local#me"}, Report: func() *health.Report { return new(health.Report) }}
	srv := httptest.NewUnstartedServer(page)
	page.URL = "http://" + srv.Listener.Addr().String() + "/"
	p := browser.New(t)
	srv.Start()
	t.Cleanup(srv.Close)
	t.Cleanup(page.Close)
	p.Looks(1440, 900, false) // with the column of ids
	p.GoTo(page.Link(nil))
	p.Until(`!!document.querySelector("[data-ready]")`)

	id := 0
	send := func(method string) {
		id++
		frames.Record(trace.Frame{Dir: trace.Out, Conn: "c", Msg: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q}`, id, method)})
	}
	flood := func() {
		for i := range 20_000 {
			if i%2000 == 0 {
				send("rare")
			}
			send("ping")
		}
	}
	p.GoTo(page.URL + "wire?q=method:rare")
	p.Reads("No row fits the filter.")
	flood()
	p.Until(`document.querySelector(".wire-box").dataset.rows === "10"`)

	p.GoTo(page.URL + "wire")
	p.Until(`document.querySelector(".wire-box").dataset.rows === "500"`)
	send("slow")
	slow := id
	p.Until(fmt.Sprintf(`document.querySelector(".wire-box").innerText.includes("%d")`, slow))
	flood()
	frames.Record(trace.Frame{Dir: trace.In, Conn: "c", Msg: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, slow)})
	p.Until(fmt.Sprintf(`document.querySelector(".wire-box").innerText.includes("%d")`, id))
	p.Until(fmt.Sprintf(`(() => {
		const box = document.querySelector(".wire-box");
		box.scrollTop = 0;
		const ids = [...box.querySelectorAll(".c-id")].map((e) => Number(e.innerText));
		for (let i = 1; i < ids.length; i++) if (ids[i] !== ids[i - 1] + 1) throw Error("a gap after " + ids[i - 1] + ": " + ids[i]);
		return Number(box.dataset.rows) > 2000 && ids[0] > %d;
	})()`, slow))
}
