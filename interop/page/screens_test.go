package page

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// axe finds faults of accessibility on the page as it is.
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
	raw := browser.Eval[string](p, `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations))`)
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
			args := []string{"inspect", "--no-open", "everything"}
			if verb == "up" {
				args = []string{"up", "--http", "127.0.0.1:0", "--gateway", gatewayFile(t), "-s", "everything", "-s", "shop"}
			}
			p, origin := opened(t, args...)
			loaded := p.Requests()
			for _, path := range paths {
				before := len(loaded())
				p.GoTo(origin + path)
				p.Until(`!!document.querySelector("[data-ready]")`)
				var files []string
				for _, at := range loaded()[before:] {
					if u, err := url.Parse(at); err == nil && u.Scheme != "data" && !strings.HasPrefix(u.Path, "/ui/") {
						files = append(files, at)
					}
				}
				if len(files) > 4 { // the document, its style, its script, and that of the screen
					t.Errorf("%s loads %q", path, files)
				}
				if first := begun[path]; first != nil {
					first(p)
				}
				everyLook(p, func(look string) {
					where := verb + " " + path + ", " + look
					fits(t, p, where)
					axe(t, p, where)
				})
			}
			for _, at := range loaded() {
				if u, err := url.Parse(at); err != nil || u.Scheme != "data" && !strings.HasPrefix(at, origin+"/") && !strings.HasPrefix(at, strings.Replace(origin, "127.0.0.1", "localhost", 1)+"/sandbox") {
					t.Errorf("the page has loaded %s", at)
				}
			}
		})
	}
}
