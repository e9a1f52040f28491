package page

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// axe finds faults of accessibility on the page as it is. In dark it looks at the colors alone: nothing else differs from
// light, in which the callers look too, and the rest takes as long again.
func axe(t *testing.T, p *browser.Person, where string) {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("..", "npm", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		if os.Getenv("PATCHBAY_INTEROP") == "required" {
			t.Fatal(err)
		}
		t.Skip("no packages: npm ci --prefix interop/npm")
	}
	if !browser.Eval[bool](p, `typeof axe === "object"`) {
		browser.Eval[bool](p, string(script)+";\ntrue")
	}
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct {
			HTML           string
			FailureSummary string
		}
	}
	raw := browser.Eval[string](p, `axe.run(document, {
		resultTypes: ["violations"],
		...(matchMedia("(prefers-color-scheme: dark)").matches ? {runOnly: ["cat.color"], rules: {"color-contrast-enhanced": {enabled: false}}} : {}),
	}).then(r => JSON.stringify(r.violations))`)
	if err := json.Unmarshal([]byte(raw), &found); err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		for _, n := range f.Nodes {
			t.Errorf("%s: %s (%s): %s\n  %.300s\n  %s", where, f.ID, f.Impact, f.Help, n.HTML, n.FailureSummary)
		}
	}
}

// everyLook calls check for the page on a wide and a narrow window, and at 200 %, in light and dark.
func everyLook(p *browser.Person, check func(look string)) {
	for _, dark := range []bool{false, true} {
		for _, width := range []int64{1440, 720, 320} { // 720: 1440 at 200 %
			p.Looks(width, 900*width/1440, dark)
			check(fmt.Sprintf("%d wide, dark: %v", width, dark))
		}
	}
}

// fits sees that a page needs no scrolling to the side.
func fits(t *testing.T, p *browser.Person, where string) {
	t.Helper()
	if wide := browser.Eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
		t.Errorf("%s: the page is %d px too wide", where, wide)
	}
}

// screensOf are the addresses of the screens for a server.
var screensOf = map[string][]string{
	"inspect": {"/s/everything", "/s/everything/resources", "/s/everything/templates", "/s/everything/prompts", "/apps/everything/roll_dice", "/wire"},
	"up":      {"/", "/s/everything/tools/echo", "/wire", "/apps", "/charts", "/inbox", "/tasks", "/policy?server=everything&tool=confirm_delete", "/audit", "/recordings", "/help"},
}

// begun is what people do first on a screen, by its address.
var begun = map[string]func(p *browser.Person){
	"/s/everything/tools/echo": func(p *browser.Person) {
		focused(p, "message")
		p.Keys("hello")
		p.Keys(kb.Enter, ctrl)
		p.Until(`!!document.querySelector("section.result .status.ok")`)
	},
	"/apps/everything/roll_dice": func(p *browser.Person) {
		p.Until(`!!document.querySelector("section.call button.main:enabled")`)
		p.Press("button", "Call")
		p.Reads("→ view ui/notifications/tool-result")
	},
	"/policy?server=everything&tool=confirm_delete": func(p *browser.Person) {
		p.Press("button", "Explain")
		p.Reads("Refused")
	},
	"/recordings": func(p *browser.Person) {
		p.Until(`!!document.querySelector("form textarea")`)
		p.Write("Policy, as in its file", "rules: [{name: all, when: 'true', effect: allow}]")
		p.Press("button", "Decide")
		p.Reads("everything/echo")
	},
	"/audit": func(p *browser.Person) {
		p.Press("button", "Verify the log")
		p.Reads("The log is whole.")
		p.Reads("everything echo")
	},
}

// gatewayFile writes a gateway.yaml with a policy and an audit log.
func gatewayFile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"gateway.yaml": "policy: policy.yaml\naudit: {file: audit.jsonl}\n",
		"policy.yaml":  "rules:\n  - {name: nobody deletes, when: 'name == \"confirm_delete\"', effect: deny}\n  - {name: the rest, when: 'true', effect: allow}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "gateway.yaml")
}

// Every screen is usable for people who see little, or nothing: axe finds no fault, on any window and in both themes,
// and nothing is loaded from elsewhere.
func TestScreens(t *testing.T) {
	for verb, paths := range screensOf {
		t.Run(verb, func(t *testing.T) {
			p, origin := opened(t, screensBy(t, verb)...)
			loaded := p.Requests()
			for _, path := range paths {
				p.GoTo(origin + path)
				p.Until(`!!document.querySelector("[data-ready]")`)
				if first := begun[path]; first != nil {
					first(p)
				}
				everyLook(p, func(look string) {
					where := verb + " " + path + ", " + look
					fits(t, p, where)
					axe(t, p, where)
				})
			}
			for _, r := range loaded() {
				if u, err := url.Parse(r.URL); err != nil || u.Scheme != "data" && !strings.HasPrefix(r.URL, origin+"/") && !strings.HasPrefix(r.URL, strings.Replace(origin, "127.0.0.1", "localhost", 1)+"/sandbox") {
					t.Errorf("the page has loaded %s", r.URL)
				}
			}
		})
	}
}

// screensBy are the arguments of the program for the screens of a verb.
func screensBy(t *testing.T, verb string) []string {
	if verb == "up" {
		return []string{"up", "--http", "127.0.0.1:0", "--gateway", gatewayFile(t), "-s", "everything", "-s", "shop"}
	}
	return []string{"inspect", "--no-open", "everything"}
}

// streams stay open for what comes later.
var streams = regexp.MustCompile(`^/ui/events\?| subscriptions/listen$`)

// A screen is there after at most six requests: the document, its style, its script, that of the screen, the state, and one
// for what the screen shows. A tool with a view needs its form too.
func TestRequests(t *testing.T) {
	for verb, paths := range screensOf {
		t.Run(verb, func(t *testing.T) {
			p, origin := opened(t, screensBy(t, verb)...)
			loaded := p.Requests()
			for _, path := range paths {
				p.GoTo("about:blank")
				before := len(loaded())
				p.GoTo(origin + path)
				p.Until(`!!document.querySelector("[data-ready]")`)
				// Until nothing has been asked for in half a second.
				for now, quiet := 0, 0; quiet < 10; quiet++ {
					browser.Eval[bool](p, `new Promise(done => setTimeout(done, 50, true))`)
					if n := len(loaded()); n > now {
						now, quiet = n, 0
					}
				}
				var asked []string
				for _, r := range loaded()[before:] {
					at, own := strings.CutPrefix(r.URL, origin)
					if method, is := r.Headers["Mcp-Method"]; is {
						at += fmt.Sprint(" ", method)
					}
					if !own && !strings.HasPrefix(at, "data:") {
						t.Errorf("%s asks for %s", path, at)
					}
					if own && !streams.MatchString(at) {
						asked = append(asked, at)
					}
				}
				most := 6
				if strings.HasPrefix(path, "/apps/") {
					most++
				}
				if len(asked) > most || len(asked) < 4 {
					t.Errorf("%s makes %d requests: %q", path, len(asked), asked)
				}
			}
		})
	}
}
