package interop

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// chromium is the path of a Chromium or Chrome.
var chromium = sync.OnceValues(func() (string, error) {
	names := []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", `C:\Program Files\Google\Chrome\Application\chrome.exe`,
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no browser: install Chromium (apt-get install chromium); %q are not there", names)
})

// pageLimit bounds the wait for something on a page.
const pageLimit = 60 * time.Second

// A person uses pages in a browser of their own, by roles and names, like a screen reader. The
// browser ends with the test.
type person struct {
	t   *testing.T
	ctx context.Context
}

// newPerson starts a browser, or ends the test: skipped on a machine without one, failed where
// it is required. The browser can reach only this machine.
func newPerson(t *testing.T) *person {
	t.Helper()
	path, err := chromium()
	if err != nil {
		if required() {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.Flag("lang", "en"))
	all, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(all)
	t.Cleanup(cancel)
	t.Cleanup(func() { // waits until all its processes have ended
		bounded, cancel := context.WithTimeout(ctx, pageLimit)
		defer cancel()
		if err := chromedp.Cancel(bounded); err != nil {
			t.Logf("the browser's end: %v", err)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return &person{t, ctx}
}

// does something in the browser.
func (p *person) does(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageLimit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("in the browser: %v\n%s", err, p.sees())
	}
}

// goTo opens a page.
func (p *person) goTo(page string) {
	p.t.Helper()
	p.does(chromedp.Navigate(page))
}

// press clicks a button or a link.
func (p *person) press(role, name string) {
	p.t.Helper()
	p.does(chromedp.Click("", byRole(role, name)))
}

// write types a text into a field.
func (p *person) write(name, text string) {
	p.t.Helper()
	p.does(chromedp.SendKeys("", text, byRole("textbox", name)))
}

// byRole finds the element with a role and a name.
func byRole(role, name string) chromedp.QueryOption {
	return chromedp.ByFunc(func(ctx context.Context, t *chromedp.Target, root *chromedp.Node) ([]cdp.NodeID, error) {
		found, err := cdp.Call(ctx, t, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{NodeID: root.NodeID, Role: role, AccessibleName: name})
		if err != nil || len(found.Nodes) == 0 {
			return nil, err
		}
		if len(found.Nodes) > 1 {
			return nil, fmt.Errorf("%d elements are a %s called %q", len(found.Nodes), role, name)
		}
		pushed, err := cdp.Call(ctx, t, dom.PushNodesByBackendIDsToFrontend, dom.PushNodesByBackendIDsToFrontendParams{
			BackendNodeIDs: []cdp.BackendNodeID{found.Nodes[0].BackendDOMNodeID},
		})
		return pushed.NodeIDs, err
	})
}

// reads waits for a text on the page.
func (p *person) reads(want string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageLimit)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
		if err == nil && strings.Contains(text, want) {
			return
		}
		select {
		case <-again.C: // also after an error: the page may have been replaced
		case <-ctx.Done():
			p.t.Fatalf("%q is not on the page (%v)\n%s", want, err, p.sees())
		}
	}
}

// sees is the page as text, for a failure.
func (p *person) sees() string {
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	return fmt.Sprintf("the page is %s (error %v)", text, err)
}

// isSentAway presses a button that leads to a page out of the browser's reach, as if the
// browser ran on another machine, and returns its address.
func (p *person) isSentAway(button, prefix string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageLimit)
	defer cancel()
	at, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) (string, error) {
		patterns := []*fetch.RequestPattern{{URLPattern: prefix + "*"}}
		if _, err := cdp.Call(ctx, t, fetch.Enable, fetch.EnableParams{Patterns: patterns}); err != nil {
			return "", err
		}
		stopped, err := chromedp.WaitEvent(fetch.RequestPaused, nil, chromedp.Click("", byRole("button", button)))(ctx, t)
		if err != nil {
			return "", err
		}
		_, err = cdp.Call(ctx, t, fetch.FailRequest, fetch.FailRequestParams{RequestID: stopped.RequestID, ErrorReason: network.ErrorReasonConnectionRefused})
		return stopped.Request.URL, err
	})
	if err != nil {
		p.t.Fatalf("pressing %q: %v\n%s", button, err, p.sees())
	}
	return at
}
