// Package browser is a person with a browser, for tests: Chromium, whose pages they use by roles and names. The tests of
// a package share one.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
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

// costly are features that headless tests do not use. The first two are chromedp's; the next two draw suggestions below the
// address, in a process for each window; the last one has a process ready for the next site.
const costly = "Translate,BlinkGenPropertyTrees,WebUIOmniboxPopup,WebUIOmniboxAimPopup,SpareRendererForSitePerProcess"

// started is the one browser of the test binary, which takes more time to start than most tests use it.
var started struct {
	sync.Mutex
	ctx context.Context // nil before the first test that needs it
	end func()
}

// start starts the browser, if no test has done so. It can reach only this machine.
func start() (context.Context, error) {
	started.Lock()
	defer started.Unlock()
	if started.ctx != nil {
		return started.ctx, nil
	}
	path, err := chromium()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.Flag("disable-features", costly),
		chromedp.ExecPath(path), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE [::1]"), chromedp.Flag("lang", "en"))
	all, cancelAll := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(all)
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		cancelAll()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	started.ctx, started.end = ctx, func() {
		bounded, stop := context.WithTimeout(ctx, pageLimit)
		_ = chromedp.Cancel(bounded) // the next lines kill what does not end
		stop()
		cancel()
		cancelAll()
	}
	return ctx, nil
}

// End ends the browser and waits until all its processes have ended. A TestMain calls it after its tests.
func End() {
	started.Lock()
	defer started.Unlock()
	if started.ctx != nil {
		started.end()
		started.ctx = nil
	}
}

// Person uses pages by roles and names, like a screen reader. They share the browser with others of the test binary, but
// no window, cookie or storage; these end with the test.
type Person struct {
	Context context.Context // for chromedp
	t       testing.TB
}

// New gives a person a window, or ends the test: skipped on a machine without a browser, failed where PATCHBAY_INTEROP
// requires it. The TestMain of the package calls End.
func New(t testing.TB) *Person {
	t.Helper()
	if _, err := chromium(); err != nil && os.Getenv("PATCHBAY_INTEROP") != "required" {
		t.Skip(err)
	}
	all, err := start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(all, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("a window: %v", err)
	}
	return &Person{ctx, t}
}

// Do something in the browser.
func (p *Person) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.Context, pageLimit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("in the browser: %v\n%s", err, p.Sees())
	}
}

// GoTo opens a page.
func (p *Person) GoTo(page string) {
	p.t.Helper()
	p.Do(chromedp.Navigate(page))
}

// Press clicks a button or a link.
func (p *Person) Press(role, name string) {
	p.t.Helper()
	p.Do(chromedp.Click("", ByRole(role, name)))
}

// Follow opens the page of a link in a tab of its own, and returns the person in that tab.
func (p *Person) Follow(link string) *Person {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.Context, pageLimit)
	defer cancel()
	href, err := chromedp.Run(ctx, chromedp.AttributeValue("", "href", ByRole("link", link)))
	if err != nil {
		p.t.Fatalf("the link %q: %v\n%s", link, err, p.Sees())
	}
	return p.Tab(href.Value)
}

// Tab opens a page in a tab of its own, and returns the person in that tab.
func (p *Person) Tab(page string) *Person {
	p.t.Helper()
	tab, cancel := chromedp.NewContext(p.Context)
	p.t.Cleanup(cancel)
	if err := chromedp.Do(tab); err != nil {
		p.t.Fatalf("a tab: %v", err)
	}
	in := &Person{tab, p.t}
	in.GoTo(page)
	return in
}

// Front shows the tab of the person in front of the others.
func (p *Person) Front() {
	p.t.Helper()
	p.Do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, page.BringToFront, cdp.Empty{})
		return chromedp.Void{}, err
	})
}

// Write types a text into a field.
func (p *Person) Write(name, text string) {
	p.t.Helper()
	p.Do(chromedp.SendKeys("", text, ByRole("textbox", name)))
}

// ByRole finds the element with a role and a name.
func ByRole(role, name string) chromedp.QueryOption {
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

// Reads waits for a text on the page.
func (p *Person) Reads(want string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.Context, pageLimit)
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
			p.t.Fatalf("%q is not on the page (%v)\n%s", want, err, p.Sees())
		}
	}
}

// Sees is the page as text, for a failure.
func (p *Person) Sees() string {
	ctx, cancel := context.WithTimeout(p.Context, 10*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	return fmt.Sprintf("the page is %s (error %v)", text, err)
}

// SentAway presses a button that leads to a page out of the browser's reach, as if the
// browser ran on another machine, and returns its address.
func (p *Person) SentAway(button, prefix string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.Context, pageLimit)
	defer cancel()
	at, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) (string, error) {
		patterns := []*fetch.RequestPattern{{URLPattern: prefix + "*"}}
		if _, err := cdp.Call(ctx, t, fetch.Enable, fetch.EnableParams{Patterns: patterns}); err != nil {
			return "", err
		}
		stopped, err := chromedp.WaitEvent(fetch.RequestPaused, nil, chromedp.Click("", ByRole("button", button)))(ctx, t)
		if err != nil {
			return "", err
		}
		_, err = cdp.Call(ctx, t, fetch.FailRequest, fetch.FailRequestParams{RequestID: stopped.RequestID, ErrorReason: network.ErrorReasonConnectionRefused})
		return stopped.Request.URL, err
	})
	if err != nil {
		p.t.Fatalf("pressing %q: %v\n%s", button, err, p.Sees())
	}
	return at
}

// Eval returns the value of an expression of JavaScript, and waits for it if it is a promise.
func Eval[T any](p *Person, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.Context, pageLimit)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%.200s: %v\n%s", expression, err, p.Sees())
	}
	return v
}

// Until waits until an expression of JavaScript is true.
func (p *Person) Until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.Context, pageLimit)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		if err == nil && is {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			p.t.Fatalf("%s is not true (%v)\n%s", expression, err, p.Sees())
		}
	}
}

// Keys presses keys, without a field of their own. As on a keyboard, a key writes nothing and presses no button if the
// page has taken it: chromedp.KeyEvent sends its character in any case.
func (p *Person) Keys(keys string, options ...chromedp.KeyOption) {
	p.t.Helper()
	for _, r := range keys {
		events := kb.Encode(r)
		down := events[0]
		for _, o := range options {
			o(down)
		}
		down.Type = kb.KeyRawDown
		if len(events) == 3 && down.Modifiers&^int64(chromedp.ModifierShift) == 0 {
			down.Type, down.Text, down.UnmodifiedText = kb.KeyDown, events[1].Text, events[1].UnmodifiedText
		}
		up := events[len(events)-1]
		up.Modifiers = down.Modifiers
		p.Do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, *down)
			if err == nil && !(down.AutoRepeat == nil || !*down.AutoRepeat) {
				_, err = cdp.Call(ctx, t, input.DispatchKeyEvent, *up)
			}
			return chromedp.Void{}, err
		})
	}
}

// Held makes the press of a key one more of a key that is held.
func Held(k *input.DispatchKeyEventParams) { k.AutoRepeat = new(true) }

// Looks changes the size of the window in CSS pixels, and whether the person prefers dark colors.
func (p *Person) Looks(width, height int64, dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.Do(chromedp.EmulateViewport(width, height), func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		return chromedp.Void{}, err
	})
}

// Picture returns the page as PNG.
func (p *Person) Picture() []byte {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.Context, pageLimit)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	return png
}

// Requests collects the requests of pages from now on. The result may be called at any time.
func (p *Person) Requests() func() []*network.Request {
	p.t.Helper()
	var mu sync.Mutex
	var all []*network.Request
	p.Do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{})
		return chromedp.Void{}, err
	})
	if err := chromedp.Listen(p.Context, func(ev any) {
		if e, ok := ev.(*network.EventRequestWillBeSent); ok {
			mu.Lock()
			all = append(all, e.Request)
			mu.Unlock()
		}
	}); err != nil {
		p.t.Fatal(err)
	}
	return func() []*network.Request {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}
