package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
	"github.com/patchbay-dev/patchbay/mcp"
)

// quoted is a text as a literal of JavaScript.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a string has a JSON form
	return string(b)
}

// attack is a text that would set window.hacked, load something or break out where a page did not treat it as text. It
// also has characters that hide, or change the order of what is shown.
const attack = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script><svg onload="window.hacked=3"></svg>` +
	`"><iframe srcdoc="<script>parent.hacked=4</script>"></iframe>[click](javascript:window.hacked=5) ![p](http://127.0.0.1:9/track.png) ` +
	"http://localhost:9/ <style>@import 'http://127.0.0.1:9/s.css'</style> \u202egnp.exe\u202c \a\x1b[31m\x00\u200b"

const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="window.hacked=6"><script>window.hacked=7</script><image href="http://127.0.0.1:9/i.png"/></svg>`

// hostile is a server that attacks the people who look at it, with each text that a server can send.
func hostile(t *testing.T) *mcp.Server {
	t.Helper()
	srv := &mcp.Server{Name: "hostile", Title: attack, Version: attack, Instructions: attack}
	type none struct{}
	type in struct {
		Text string `json:"text,omitempty" doc:"a text"`
	}
	tool := func(name string, run func() ([]mcp.Content, error)) {
		mcp.AddTool(srv, mcp.Tool{Name: name, Title: attack, Description: attack}, func(context.Context, in) ([]mcp.Content, error) { return run() })
	}
	tool("text", func() ([]mcp.Content, error) { return []mcp.Content{mcp.Text(attack)}, nil })
	tool("error", func() ([]mcp.Content, error) { return nil, errors.New(attack) })
	tool("huge", func() ([]mcp.Content, error) {
		return []mcp.Content{mcp.Text(strings.Repeat("long"+strings.Repeat("w", 3000)+" "+attack+"\n", 200))}, nil
	})
	tool("pictures", func() ([]mcp.Content, error) {
		return []mcp.Content{
			mcp.ImageContent{Data: []byte(svg), MIMEType: "image/svg+xml"},
			mcp.ImageContent{Data: []byte(svg), MIMEType: "image/png"},
			mcp.ImageContent{Data: []byte(svg), MIMEType: attack},
			mcp.AudioContent{Data: []byte(svg), MIMEType: "text/html"},
		}, nil
	})
	tool("resources", func() ([]mcp.Content, error) {
		return []mcp.Content{
			mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "javascript:window.hacked=8", MIMEType: "text/html", Text: attack}},
			mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "ui://hostile/" + url.PathEscape(attack), MIMEType: "text/markdown", Text: attack}},
			mcp.ResourceLink{Resource: mcp.Resource{URI: "javascript:window.hacked=9", Name: attack, Title: attack, Description: attack, MIMEType: attack}},
		}, nil
	})
	mcp.AddTool(srv, mcp.Tool{Name: "table", Description: attack}, func(context.Context, none) (map[string]any, error) {
		return map[string]any{attack: []any{map[string]any{attack: attack, "__proto__": attack}}, "constructor": attack}, nil
	})
	if err := srv.HandleTool(mcp.Tool{Name: "form", Description: attack, InputSchema: json.RawMessage(`{"type":"object","title":` + quoted(attack) + `,"properties":{` +
		quoted(attack) + `:{"type":"string","title":` + quoted(attack) + `,"description":` + quoted(attack) + `,"default":` + quoted(attack) + `},` +
		`"__proto__":{"enum":[` + quoted(attack) + `],"default":` + quoted(attack) + `}}}`)}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(attack)}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	mcp.AddTool(srv, mcp.Tool{Name: "question"}, func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.ElicitForm(ctx, attack, json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","title":`+quoted(attack)+`,"description":`+quoted(attack)+`}}}`))
		return attack, err
	})
	long := strings.Repeat(attack+" ", 300)
	if err := srv.HandleTool(mcp.Tool{Name: "long", Title: long, Description: long, InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","title":` + quoted(long) + `,"description":` + quoted(long) + `}}}`)},
		func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return &mcp.ToolResult{}, nil }); err != nil {
		t.Fatal(err)
	}
	mcp.AddResource(srv, mcp.Resource{URI: "javascript:window.hacked=10", Name: attack, Title: attack, Description: long, MIMEType: "text/html"},
		func(context.Context) (string, error) { return attack, nil })
	mcp.AddPrompt(srv, mcp.Prompt{Name: "prompt", Title: attack, Description: long}, func(context.Context, none) (string, error) { return attack, nil })
	return srv
}

// A server cannot run anything in the page, load anything by it, or make it useless: all that it sends is text.
func TestHostileServer(t *testing.T) {
	srv := hostile(t)
	upstream := httptest.NewServer(srv)
	t.Cleanup(func() { upstream.CloseClientConnections(); upstream.Close() })
	p, origin := opened(t, "inspect", "--no-open", upstream.URL)
	loaded := p.Requests()
	var dialogs atomic.Int64
	p.Do(func(ctx context.Context, c *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, c, page.Enable, page.EnableParams{})
		return chromedp.Void{}, err
	})
	if err := chromedp.Listen(p.Context, func(ev any) {
		if _, ok := ev.(*page.EventJavascriptDialogOpening); ok {
			dialogs.Add(1)
		}
	}); err != nil {
		t.Fatal(err)
	}
	p.Looks(320, 640, false)
	home := browser.Eval[string](p, `location.pathname`)
	safe := func(where string) {
		t.Helper()
		if got := browser.Eval[string](p, `String(window.hacked)`); got != "undefined" {
			t.Errorf("%s: code of the server has run: window.hacked is %s", where, got)
		}
		if got := browser.Eval[string](p, `[...document.querySelectorAll("body script, iframe, object, embed, body style, body link, a[href^='javascript:'], img:not([src^='data:image/png'])")].map(e => e.outerHTML.slice(0, 200)).join("\n")`); got != "" {
			t.Errorf("%s: the page has elements of the server:\n%s", where, got)
		}
		if got := browser.Eval[string](p, `/[\u202a-\u202e\u200b\u0007\u001b]/.exec(document.body.innerText)?.[0].codePointAt(0).toString(16) ?? ""`); got != "" {
			t.Errorf("%s: the page shows the character %s as it is", where, got)
		}
		fits(t, p, where)
		if top := browser.Eval[float64](p, `(document.querySelector("section.call button.main")?.getBoundingClientRect().top ?? 0) + scrollY`); top > 1600 {
			t.Errorf("%s: the button is %.0f px below the top", where, top)
		}
	}
	show := func(path string) {
		t.Helper()
		p.GoTo(origin + path)
		p.Until(`!!document.querySelector("[data-ready]")`)
	}
	show(home)
	p.Until(`document.querySelectorAll("main li a").length >= 8`)
	safe("the list of tools")
	for _, name := range []string{"text", "error", "huge", "pictures", "resources", "table", "form", "long"} {
		show(home + "/tools/" + name)
		p.Until(`!!document.querySelector("section.call button.main:enabled")`)
		safe(name + ", before the call")
		p.Do(chromedp.Click(`section.call button.main`))
		p.Until(`!!document.querySelector("section.result .status:not(.warn)")`)
		safe(name + ", after the call")
		for _, tab := range []string{"raw", "structured"} {
			if browser.Eval[bool](p, `(() => { const t = [...document.querySelectorAll("[role=tab]")].find(t => t.textContent === `+quoted(tab)+`); t?.click(); return !!t })()`) {
				p.Until(`[...document.querySelectorAll("[role=tab]")].find(t => t.textContent === ` + quoted(tab) + `).ariaSelected === "true"`)
				safe(fmt.Sprintf("%s, %s", name, tab))
			}
		}
	}
	show(home + "/tools/question")
	p.Until(`!!document.querySelector("section.call button.main:enabled")`)
	p.Do(chromedp.Click(`section.call button.main`))
	p.Until(`!!document.querySelector(".question textarea, .question input")`)
	safe("a question")
	show(home + "/resources/" + url.PathEscape("javascript:window.hacked=10"))
	p.Until(`!!document.querySelector("section.result .status:not(.warn)")`)
	safe("a resource")
	show(home + "/prompts/prompt")
	p.Until(`!!document.querySelector("section.call button.main")`)
	p.Do(chromedp.Click(`section.call button.main`))
	p.Until(`!!document.querySelector("section.result .status:not(.warn)")`)
	safe("a prompt")
	show("/wire")
	p.Until(`document.querySelectorAll(".wire-box [aria-rowindex]").length > 5`)
	safe("the wire")

	for _, r := range loaded() {
		at := r.URL
		if u, err := url.Parse(at); err != nil || u.Scheme != "data" && !strings.HasPrefix(at, origin+"/") {
			t.Errorf("the page has loaded %.200s", at)
		}
	}
	if n := dialogs.Load(); n > 0 {
		t.Errorf("%d dialogs have opened", n)
	}
}
