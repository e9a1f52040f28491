package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/patchbay-dev/patchbay/apps"
	"github.com/patchbay-dev/patchbay/interop/internal/browser"
	"github.com/patchbay-dev/patchbay/mcp"
)

// client is what each view of these tests has of the bridge: send, ask, told, and report, which calls a tool that only the
// view may call.
const client = `<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>v</title><body><p id="out">–</p><script>
const waiting = {}; let last = 0, told = {};
const send = (m) => parent.postMessage({jsonrpc: "2.0", ...m}, "*");
const ask = (method, params) => new Promise((done) => { waiting[++last] = done; send({id: last, method, params}); });
const report = (v) => ask("tools/call", {name: "report", arguments: {text: JSON.stringify(v)}});
const attempt = async (f) => { try { return String(await f()) } catch (e) { return "refused: " + e.name } };
addEventListener("message", ({data}) => { if (waiting[data.id]) { waiting[data.id](data); delete waiting[data.id] } else if (data.method) told[data.method] = data.params });
const begun = ask("ui/initialize", {appInfo: {name: "v", version: "1"}, appCapabilities: {}, protocolVersion: "2026-01-26"}).then((a) => { send({method: "ui/notifications/initialized"}); return a });
`

// viewer is a server whose views are scripts of a test.
type viewer struct {
	t      *testing.T
	p      *browser.Person
	origin string
	ui     *apps.Apps

	mu      sync.Mutex
	reports chan map[string]any
	secret  int // calls of the tool that is for models alone; guarded by mu
}

func newViewer(t *testing.T) *viewer {
	t.Helper()
	v := &viewer{t: t, reports: make(chan map[string]any, 100)}
	srv := &mcp.Server{Name: "views", Version: "1"}
	v.ui = apps.Enable(srv)
	type in struct {
		Text string `json:"text"`
	}
	apps.AddTool(v.ui, mcp.Tool{Name: "report"}, apps.Link{Visibility: []apps.Audience{apps.App}}, func(_ context.Context, in in) (string, error) {
		var got map[string]any
		err := json.Unmarshal([]byte(in.Text), &got)
		v.reports <- got
		return "reported", err
	})
	apps.AddTool(v.ui, mcp.Tool{Name: "secret"}, apps.Link{Visibility: []apps.Audience{apps.Model}}, func(context.Context, struct{}) (string, error) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.secret++
		return "the secret", nil
	})
	upstream := httptest.NewServer(srv)
	t.Cleanup(func() { upstream.CloseClientConnections(); upstream.Close() })
	v.p, v.origin = opened(t, "inspect", "--no-open", upstream.URL)
	v.p.Looks(1440, 900, false)
	return v
}

// show opens the view of a script, with what it needs, and calls its tool.
func (v *viewer) show(name string, needs apps.Needs, script string) {
	v.t.Helper()
	v.ui.AddView(apps.View{URI: "ui://views/" + name, Name: name, HTML: client + script + "</script></body></html>", Needs: needs})
	apps.AddTool(v.ui, mcp.Tool{Name: name}, apps.Link{ResourceURI: "ui://views/" + name}, func(context.Context, struct{}) (string, error) { return "result of " + name, nil })
	server := strings.Split(browser.Eval[string](v.p, `location.pathname`), "/")[2]
	v.p.GoTo(v.origin + "/apps/" + server + "/" + name)
	v.p.Until(`!!document.querySelector("section.call button.main:enabled")`)
	v.p.Do(chromedp.Click(`section.call button.main`))
	v.p.Until(`!!document.querySelector("iframe, .failed")`)
}

// reported returns the next report of a view.
func (v *viewer) reported() map[string]any {
	v.t.Helper()
	select {
	case got := <-v.reports:
		return got
	case <-time.After(30 * time.Second):
		v.t.Fatalf("the view reports nothing\n%s", v.p.Sees())
		return nil
	}
}

// still sees that the page is where it was, and that nothing was opened beside it.
func (v *viewer) still(where string) {
	v.t.Helper()
	if at := browser.Eval[string](v.p, `location.origin + " " + document.querySelectorAll("iframe").length`); at != v.origin+" 1" {
		v.t.Errorf("%s: the page is now %q", where, at)
	}
	pages, own := 0, chromedp.FromContext(v.p.Context).BrowserContextID
	v.until("the browser says what it shows", func(all []*target.Info) bool {
		for _, i := range all {
			if i.Type == "page" && i.BrowserContextID == own {
				pages++
			}
		}
		return true
	})
	if pages != 1 {
		v.t.Errorf("%s: the browser has %d pages", where, pages)
	}
}

// until waits for what the browser shows in pages and frames.
func (v *viewer) until(what string, is func(all []*target.Info) bool) {
	v.t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(30 * time.Second); ; <-again.C {
		found := false
		v.p.Do(func(ctx context.Context, c *chromedp.Target) (chromedp.Void, error) {
			all, err := cdp.Call(ctx, c, target.GetTargets, target.GetTargetsParams{})
			found = err == nil && is(all.TargetInfos)
			return chromedp.Void{}, err
		})
		if found {
			return
		}
		if time.Now().After(end) {
			v.t.Fatalf("it does not come that %s\n%s", what, v.p.Sees())
		}
	}
}

// A view of the tree's own server gets the result of its tool, calls the tool that is for it, and is told about another
// theme; all by keyboard.
func TestApps(t *testing.T) {
	p, origin := opened(t, "inspect", "--no-open", "everything")
	p.Looks(1440, 900, false)
	p.GoTo(origin + "/apps")
	p.Until(`document.querySelectorAll("main li a").length === 2`)
	p.Keys("roll_dice")
	p.Keys(kb.Enter)
	focused(p, "sides")
	p.Keys("20")
	p.Keys(kb.Enter, ctrl)
	messages := `[...document.querySelectorAll(".messages summary")].map(s => s.textContent.trim().replace(/\s+/g, " ")).join("\n")`
	p.Until(messages + `.includes("→ view ui/notifications/tool-result") && ` + messages + `.includes("ui/notifications/size-changed")`)
	p.Until(`document.body.innerText.includes("px.")`)
	if got := browser.Eval[string](p, messages); !strings.HasPrefix(got, "view → ui/initialize\n→ view answer to ui/initialize\nview → ui/notifications/initialized\n→ view ui/notifications/tool-input\n→ view ui/notifications/tool-result\n") {
		t.Errorf("the messages are:\n%s", got)
	}
	for tabs := 0; !browser.Eval[bool](p, `document.activeElement?.matches(".view")`); tabs++ {
		if tabs == 30 {
			t.Fatalf("30 times Tab do not lead to the view\n%s", p.Sees())
		}
		p.Keys(kb.Tab)
	}
	p.Keys(kb.Tab)
	p.Until(`document.activeElement?.tagName === "IFRAME"`)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for tries := 0; !browser.Eval[bool](p, messages+`.includes("→ view answer to tools/call")`); tries++ {
		if tries == 100 {
			t.Fatalf("Enter does not press the button of the view\n%s", p.Sees())
		}
		p.Keys(kb.Enter) // the focus comes to its only button after it has come to the frame
		<-again.C
	}
	browser.Eval[bool](p, `(() => { const s = [...document.querySelectorAll("section.result select")].find(s => s.value === "light"); s.value = "dark"; s.dispatchEvent(new Event("change", {bubbles: true})); return true })()`)
	p.Until(messages + `.includes("→ view ui/notifications/host-context-changed")`)
	p.GoTo(origin + "/s/everything/tools/reroll_dice")
	p.Until(`!!document.querySelector("section.call button.main:enabled")`)
}

// A view cannot leave its frame, read anything of the page, call what is not for it, or pass for somebody else.
func TestHostileViews(t *testing.T) {
	var mu sync.Mutex
	var reached []string
	beacon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		reached = append(reached, r.URL.Path)
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}))
	t.Cleanup(beacon.Close)
	v := newViewer(t)
	port := v.origin[strings.LastIndex(v.origin, ":")+1:]
	there := "const beacon = " + quoted(beacon.URL) + ", page = " + quoted(v.origin) + ", sandbox = " + quoted("http://localhost:"+port) + ";\n"

	t.Run("navigates", func(t *testing.T) {
		v.show("navigates", apps.Needs{}, there+`begun.then(async () => {
			const r = {};
			r.top = await attempt(() => { top.location = beacon + "/top"; return "done" });
			r.outer = await attempt(() => { parent.location = beacon + "/outer"; return "done" });
			r.open = String(window.open(beacon + "/open", "_blank"));
			for (const to of ["_top", "_parent", "_blank"]) { const a = document.createElement("a"); a.href = beacon + "/" + to; a.target = to; document.body.append(a); a.click() }
			const f = document.createElement("form"); f.action = beacon + "/form"; f.target = "_top"; document.body.append(f); f.submit();
			report(r);
		});`)
		if got := v.reported(); !strings.HasPrefix(fmt.Sprint(got["top"]), "refused") || got["open"] != "null" {
			t.Errorf("the view reports %v", got)
		}
		v.still("after navigation")
	})

	t.Run("reads", func(t *testing.T) {
		needs := apps.Needs{CSP: &apps.CSP{Connect: []string{v.origin, "http://localhost:" + port}}}
		v.show("reads", needs, there+`begun.then(async () => {
			const r = {origin: origin};
			r.cookie = await attempt(() => document.cookie);
			r.storage = await attempt(() => localStorage.length);
			r.top = await attempt(() => top.document.body.innerHTML);
			r.outer = await attempt(() => parent.document.body.innerHTML);
			for (const at of [page + "/ui/state", page + "/", page + "/ui/mcp/views", sandbox + "/ui/state", sandbox + "/", sandbox + "/mcp"]) {
				r[at] = await attempt(async () => (await fetch(at, {credentials: "include"})).status);
				r["POST " + at] = await attempt(async () => (await fetch(at, {method: "POST", credentials: "include", headers: {"Patchbay-Page": "1"}, body: "{}"})).status);
				r["blind " + at] = await attempt(async () => (await fetch(at, {mode: "no-cors", credentials: "include"})).type);
			}
			report(r);
		});`)
		got := v.reported()
		if got["origin"] != "null" {
			t.Errorf("the view has the origin %v", got["origin"])
		}
		for what, is := range got {
			if s := fmt.Sprint(is); what != "origin" && !strings.HasPrefix(s, "refused") && s != "403" && s != "opaque" {
				t.Errorf("%s: %v", what, is)
			}
		}
	})

	t.Run("calls", func(t *testing.T) {
		v.show("calls", apps.Needs{}, `begun.then(async () => {
			const r = {};
			const why = async (method, params) => (await ask(method, params)).error?.message ?? "answered";
			r.secret = await why("tools/call", {name: "secret", arguments: {}});
			r.absent = await why("tools/call", {name: "absent"});
			r.list = await why("tools/list", {});
			r.sampling = await why("sampling/createMessage", {messages: []});
			r.prompt = await why("prompts/get", {name: "x"});
			r.server = await why("ui/other", {});
			r.script = await why("ui/open-link", {url: "javascript:alert(1)"});
			r.file = await why("ui/open-link", {url: "file:///etc/passwd"});
			r.read = await why("resources/read", {uri: "ui://views/calls"});
			report(r);
		});`)
		for what, is := range v.reported() {
			if (is == "answered") != (what == "read") {
				t.Errorf("%s: %v", what, is)
			}
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.secret > 0 {
			t.Errorf("the tool for models was called %d times", v.secret)
		}
	})

	t.Run("granted", func(t *testing.T) {
		v.show("granted", apps.Needs{CSP: &apps.CSP{Connect: []string{beacon.URL}}}, there+`begun.then(async () => report({got: await attempt(async () => (await fetch(beacon + "/granted")).status)}));`)
		if got := v.reported(); fmt.Sprint(got["got"]) != "200" {
			t.Errorf("what was granted cannot be reached: %v", got)
		}
	})

	t.Run("loads", func(t *testing.T) {
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer udp.Close()
		script := there + "const udp = " + fmt.Sprint(udp.LocalAddr().(*net.UDPAddr).Port) + ";\n" + `begun.then(async () => {
			const r = {};
			const add = (tag, set) => { const e = document.createElement(tag); Object.assign(e, set); document.body.append(e); return e };
			r.fetch = await attempt(() => fetch(beacon + "/fetch"));
			r.xhr = await attempt(() => new Promise((ok, no) => { const x = new XMLHttpRequest(); x.onload = ok; x.onerror = () => no(new Error()); x.open("GET", beacon + "/xhr"); x.send() }));
			r.beacon = await attempt(() => navigator.sendBeacon(beacon + "/beacon", "x"));
			r.socket = await attempt(() => new Promise((ok, no) => { const s = new WebSocket(beacon.replace("http", "ws") + "/socket"); s.onopen = ok; s.onerror = () => no(new Error()) }));
			r.events = await attempt(() => new Promise((ok, no) => { const s = new EventSource(beacon + "/events"); s.onopen = ok; s.onerror = () => no(new Error()) }));
			r.worker = await attempt(() => new Worker(URL.createObjectURL(new Blob(["fetch('" + beacon + "/worker')"]))));
			add("img", {src: beacon + "/img"}); add("script", {src: beacon + "/script"}); add("iframe", {src: beacon + "/iframe"});
			add("link", {rel: "stylesheet", href: beacon + "/css"}); add("link", {rel: "prefetch", href: beacon + "/prefetch"}); add("link", {rel: "preload", as: "fetch", href: beacon + "/preload"});
			add("video", {src: beacon + "/video"}); add("object", {data: beacon + "/object"}); add("embed", {src: beacon + "/embed"});
			add("style", {textContent: "@import '" + beacon + "/import'; body { background: url(" + beacon + "/background) }"});
			add("iframe", {srcdoc: "<img src=" + beacon + "/srcdoc>"});
			const inner = add("iframe", {name: "inner"}); await attempt(() => inner.contentWindow.fetch(beacon + "/inner"));
			const form = add("form", {action: beacon + "/form", method: "post", target: "inner"}); form.submit();
			r.rtc = await attempt(() => Promise.race([new Promise((ok) => setTimeout(() => ok("late"), 4000)), (async () => {
				const c = new RTCPeerConnection({iceServers: [{urls: "stun:127.0.0.1:" + udp}]});
				c.createDataChannel("x");
				await c.setLocalDescription(await c.createOffer());
				await new Promise((ok) => { c.onicegatheringstatechange = () => c.iceGatheringState === "complete" && ok(); setTimeout(ok, 3000) });
				return c.localDescription.sdp.match(/candidate:.*/g);
			})()]));
			await report(r);
			location = beacon + "/self";
		});`
		v.show("loads", apps.Needs{}, script)
		v.reported()
		if err := udp.SetReadDeadline(time.Now()); err != nil { // what was sent has come, before the report
			t.Fatal(err)
		}
		if n, _, err := udp.ReadFrom(make([]byte, 1000)); err == nil {
			t.Errorf("the view has sent %d bytes by WebRTC", n)
		}
		v.until("the frame shows why it could not load", func(all []*target.Info) bool {
			return slices.ContainsFunc(all, func(i *target.Info) bool { return i.Type == "iframe" && i.URL == beacon.URL+"/self" })
		})
		mu.Lock()
		if len(reached) > 1 { // what was granted
			t.Errorf("the view has reached %q", reached)
		}
		mu.Unlock()
	})

	t.Run("spoofs", func(t *testing.T) {
		v.show("spoofs", apps.Needs{}, `begun.then(async () => {
			const call = {jsonrpc: "2.0", id: 99, method: "tools/call", params: {name: "report", arguments: {text: '{"spoofed": true}'}}};
			top.postMessage(call, "*"); top.postMessage(JSON.stringify(call), "*");
			const inner = document.createElement("iframe"); document.body.append(inner);
			await attempt(() => inner.contentWindow.eval("top.postMessage(" + JSON.stringify(JSON.stringify(call)) + ", '*')"));
			for (const m of ["resource-ready", "stopped", "proxy-ready"]) send({method: "ui/notifications/sandbox-" + m, params: {html: "x", reason: "spoofed"}});
			send({id: {}, method: "ping"}); parent.postMessage("text", "*"); parent.postMessage({jsonrpc: "1.0", id: 5, method: "ping"}, "*");
			send({method: "notifications/message", params: {data: "x".repeat(2 << 20)}});
			report({own: true});
		});`)
		if got := v.reported(); got["own"] != true {
			t.Errorf("a message that was not of the sandbox was read: %v", got)
		}
		v.p.Until(`document.querySelectorAll(".messages .bad").length === 7`)
		if got := v.p.Sees(); strings.Contains(got, "was stopped") {
			t.Error(got)
		}
		v.still("after spoofing")
	})

	for name, script := range map[string]string{
		"floods":        `begun.then(() => { for (let i = 0; i < 20000; i++) send({id: i + 1000, method: "ping"}) });`,
		"floods_page":   `begun.then(() => { for (let i = 0; i < 5000; i++) top.postMessage({jsonrpc: "2.0", id: i, method: "ping"}, "*") });`,
		"floods_slowly": `begun.then(() => setInterval(() => { for (let i = 0; i < 10; i++) send({method: "notifications/message", params: {}}) }, 50));`,
	} {
		t.Run(name, func(t *testing.T) {
			v.show(name, apps.Needs{}, script)
			v.p.Reads("The view was stopped: it sent more than")
			if n := browser.Eval[int](v.p, `document.querySelectorAll(".messages li").length`); n > 300 {
				t.Errorf("the page shows %d messages", n)
			}
		})
	}

	t.Run("after a flood", func(t *testing.T) {
		v.show("calm", apps.Needs{}, `begun.then(() => report({calm: true}));`)
		if got := v.reported(); got["calm"] != true {
			t.Fatalf("the view reports %v", got)
		}
		// The browser delivers what a view has sent before its window was removed.
		browser.Eval[bool](v.p, `(() => {
			const frame = document.createElement("iframe");
			document.body.append(frame);
			const gone = frame.contentWindow;
			frame.remove();
			for (let i = 0; i < 2000; i++) dispatchEvent(new MessageEvent("message", {data: "x", source: i % 2 ? gone : null}));
			return true;
		})()`)
		if got := v.p.Sees(); strings.Contains(got, "was stopped") {
			t.Errorf("the view is stopped for messages of another one: %s", got)
		}
	})

	t.Run("asks", func(t *testing.T) {
		v.show("asks", apps.Needs{}, there+`begun.then(async () => {
			const first = ask("ui/open-link", {url: beacon + "/link"});
			const second = (await ask("ui/open-link", {url: beacon + "/second"})).error?.message;
			await report({second});
			const one = (await first).error?.message;
			const message = await ask("ui/message", {role: "user", content: {type: "text", text: "<img src=x onerror=alert(1)> \u202e"}});
			await report({first: one, message: message.error?.message ?? "sent"});
		});`)
		if got := v.reported(); got["second"] != "the person is asked something already" {
			t.Errorf("the view reports %v", got)
		}
		v.p.Reads("wants to open a page in a new tab")
		v.still("while a link is asked for")
		v.p.Until(`!!document.querySelector(".question button.main:enabled")`)
		v.p.Press("button", "Decline")
		v.p.Reads("wants to send this message as yours")
		v.p.Reads(`<img src=x onerror=alert(1)> \u{202e}`)
		v.p.Until(`!!document.querySelector(".question button.main:enabled")`)
		v.p.Press("button", "Send")
		if got := v.reported(); got["first"] != "the person declined" || got["message"] != "sent" {
			t.Errorf("the view reports %v", got)
		}
	})

	t.Run("as a model", func(t *testing.T) {
		v.show("tells", apps.Needs{}, `begun.then(async () => {
			await ask("ui/update-model-context", {content: [{type: "text", text: "of before"}]});
			await ask("ui/update-model-context", {structuredContent: {chosen: 7}});
			report({});
		});`)
		apps.AddTool(v.ui, mcp.Tool{Name: "panel"}, apps.Link{ResourceURI: "ui://views/tells", Visibility: []apps.Audience{apps.App}}, func(context.Context, struct{}) (string, error) { return "", nil })
		v.reported()
		listed := `[...document.querySelectorAll("main li a")].some((a) => a.textContent.includes("panel"))`
		v.p.Until(listed)
		v.p.Press("switch", "As a model")
		v.p.Until("!" + listed)
		got := browser.Eval[string](v.p, `document.querySelector("[aria-label='What a model gets']").innerText`)
		if !strings.Contains(got, "result of tells") || !strings.Contains(got, `"chosen": 7`) || strings.Contains(got, "of before") {
			t.Errorf("a model gets %s", got)
		}
	})

	mu.Lock()
	defer mu.Unlock()
	for _, path := range reached {
		if path != "/granted" {
			t.Errorf("a view has reached %s", path)
		}
	}
}
