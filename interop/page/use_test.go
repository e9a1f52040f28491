package page

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/patchbay-dev/patchbay/apps"
	"github.com/patchbay-dev/patchbay/interop/internal/browser"
	"github.com/patchbay-dev/patchbay/interop/internal/npm"
	"github.com/patchbay-dev/patchbay/mcp"
)

// fill writes a text into the field with a label, in place of what it has.
func fill(p *browser.Person, label, text string) {
	find := `[...document.querySelectorAll("main label")].find((l) => l.textContent.trim().replace(/[* ]+required$/, "") === ` + quoted(label) + `)?.control`
	p.Until(`!!` + find)
	browser.Eval[bool](p, `(() => { const f = `+find+`; f.focus(); f.select?.(); return true })()`)
	p.Keys(text)
}

// choose selects an option of the field with a label, by the text of the option.
func choose(p *browser.Person, label, option string) {
	find := `[...document.querySelectorAll("main label")].find((l) => l.textContent.trim().replace(/[* ]+required$/, "") === ` + quoted(label) + `)?.control`
	p.Until(`!!` + find)
	browser.Eval[bool](p, `(() => { const f = `+find+`; f.value = [...f.options].find((o) => o.textContent === `+quoted(option)+`).value; f.dispatchEvent(new Event("change", {bubbles: true})); return true })()`)
}

// find opens a tool from the list by a part of its name.
func find(p *browser.Person, part, name string) {
	p.Press("link", "tools")
	p.Until(`document.querySelectorAll("main li a").length > 0`)
	browser.Eval[bool](p, `document.querySelector("[data-find]").focus(), document.querySelector("[data-find]").select(), true`)
	p.Keys(part)
	p.Keys(kb.Enter)
	p.Until(`document.querySelector("section.call h2")?.textContent.trim().startsWith(` + quoted(name) + `)`)
	p.Until(`!!document.querySelector("section.call button.main:enabled")`)
}

// ended waits until the shown call has a status.
func ended(p *browser.Person, status string) {
	p.Until(`document.querySelector("section.result .status:not(.warn)")?.textContent.includes(` + quoted(status) + `)`)
}

// The official server-everything, from the list to the last update: a form, progress, a call that is cancelled, questions,
// a message of a model, a task, a resource with updates, and a prompt with completions.
func TestUseEverything(t *testing.T) {
	p, _ := opened(t, append([]string{"inspect", "--no-open", "--"}, append(npm.Program(t, "mcp-server-everything"), "stdio")...)...)
	p.Until(`document.querySelectorAll("main li a").length >= 13`)

	// A form is drawn with its values and the focus: what is typed at once comes neither before nor behind a default.
	browser.Eval[bool](p, `(() => {
		new MutationObserver((_, o) => {
			const f = document.querySelector("main .fields input");
			if (!f) return;
			o.disconnect();
			window.drawn = f.value + (document.activeElement === f ? " has the focus" : "");
		}).observe(document.body, {childList: true, subtree: true});
		return true;
	})()`)
	find(p, "long running", "trigger-long-running-operation")
	fill(p, "duration", "2")
	if got := browser.Eval[string](p, `window.drawn`); got != "10 has the focus" {
		t.Errorf("the first field is drawn as %q", got)
	}
	fill(p, "steps", "4")
	p.Press("button", "Call")
	p.Until(`document.querySelector("progress")?.max === 4 && document.querySelector("progress").value >= 1`)
	ended(p, "ok")
	p.Reads("Long running operation completed. Duration: 2 seconds, Steps: 4.")
	fill(p, "duration", "x")
	p.Press("button", "Call")
	p.Reads("One fault: nothing was sent.")
	fill(p, "duration", "600")
	p.Press("button", "Call")
	p.Press("button", "Cancel")
	ended(p, "canceled")

	find(p, "structured", "get-structured-content")
	choose(p, "location", "Chicago")
	p.Press("button", "Call")
	ended(p, "ok")
	p.Reads("fits the output schema")
	p.Press("tab", "structured")
	p.Reads(`"temperature"`)

	find(p, "elicitation", "trigger-elicitation-request")
	p.Press("button", "Call")
	p.Until(`!!document.querySelector(".question .fields")`)
	fill(p, "String", "Ada")
	p.Press("button", "Accept")
	ended(p, "ok")
	p.Reads("User provided the requested information")
	p.Reads("Ada")

	find(p, "sampling", "trigger-sampling-request")
	fill(p, "prompt", "Say a word.")
	p.Press("button", "Call")
	p.Reads("wants a message of a model")
	fill(p, "Answer as the model", "cord")
	p.Press("button", "Send")
	ended(p, "ok")
	p.Reads("cord")

	find(p, "research", "simulate-research-query")
	fill(p, "topic", "python")
	choose(p, "ambiguous", "true")
	p.Press("button", "Call")
	p.Reads("could have multiple interpretations")
	choose(p, "Clarification", "Python snake species")
	p.Press("button", "Accept")
	ended(p, "ok")
	p.Reads("Clarification: snake")

	p.Press("link", "resources")
	p.Until(`document.querySelectorAll("main li a").length >= 7`)
	browser.Eval[bool](p, `document.querySelector("main li a").click(), true`)
	ended(p, "ok")
	p.Press("switch", "Subscribe")
	p.Reads("0 updates")
	find(p, "toggle-subscriber", "toggle-subscriber-updates")
	p.Press("button", "Call")
	ended(p, "ok")
	p.Press("link", "resources")
	p.Until(`document.querySelectorAll("main li a").length >= 7`)
	browser.Eval[bool](p, `document.querySelector("main li a").click(), true`)
	p.Until(`/[1-9]\d* updates?, the last/.test(document.querySelector("section.call [role=status]")?.textContent)`)

	p.Press("link", "prompts")
	p.Until(`[...document.querySelectorAll("main li a")].some((a) => a.textContent.includes("completable-prompt"))`)
	browser.Eval[bool](p, `[...document.querySelectorAll("main li a")].find((a) => a.textContent.includes("completable-prompt")).click(), true`)
	fill(p, "department", "S")
	p.Until(`document.querySelector("main [role=listbox]:not([hidden])")?.innerText === "Sales\nSupport"`)
	p.Keys(kb.ArrowDown)
	p.Keys(kb.Enter)
	fill(p, "name", "E")
	p.Until(`document.querySelector("main [role=listbox]:not([hidden])")?.innerText === "Eve"`)
	p.Keys(kb.ArrowDown)
	p.Keys(kb.Enter)
	p.Press("button", "Get")
	p.Reads("Please promote Eve to the head of the Sales team.")
}

// A server of 2026-07-28 asks in two rounds, and the call is on the wire three times.
func TestUseRounds(t *testing.T) {
	p, _ := opened(t, "inspect", "--no-open", "--", npm.Node(t), npm.File("peers", "server-v2.mjs"), "stdio")
	find(p, "twice", "twice")
	if got := browser.Eval[string](p, `fetch("/ui/state").then((r) => r.json()).then((s) => s.servers[0].server)`); got != "ts2 1, 2026-07-28" {
		t.Errorf("the server is %q", got)
	}
	p.Press("button", "Call")
	p.Reads("What is your name?")
	p.Press("button", "Accept")
	p.Until(`!!document.querySelector(".question .faults")`) // a name is required
	fill(p, "name", "Ada")
	p.Press("button", "Accept")
	p.Reads("And that of your friend?")
	fill(p, "name", "Grace")
	p.Press("button", "Accept")
	ended(p, "ok")
	p.Reads("Ada and Grace")
	p.Press("button", "Call")
	p.Reads("What is your name?")
	p.Press("button", "Cancel") // of the call: this server would ask again after a refusal
	ended(p, "canceled")
	p.Press("link", "on the wire")
	p.Until(`document.querySelector(".wire-box").textContent.split("tools/call twice").length - 1 >= 4`)
	p.Do(chromedp.Click(`.wire-words summary`))
	p.Reads("ok, error, tool-error, canceled or open")
	fill(p, "Filter", "colour:red")
	p.Reads(`"colour" is not a word of filters`)
}

// Below a call that failed stands what its server has written to standard error since the call began, and nothing of
// before; and that the call was translated to the revision of the server.
func TestUseFailure(t *testing.T) {
	p, _ := opened(t, "inspect", "--no-open", "--", npm.Node(t), npm.File("peers", "complains.mjs"))
	p.Until(`!!document.querySelector("section.call button.main:enabled")`) // of its only tool
	p.Press("button", "Call")
	ended(p, "tool error")
	p.Until(`document.querySelector("section.result pre.log")?.textContent === "the disk is full"`)
	p.Reads("translated: the server speaks 2025-11-25, this page 2026-07-28")
}

// Calls become tasks: one is followed to its result, one is answered and one is cancelled, on the screen of the tasks.
func TestUseTasks(t *testing.T) {
	p, origin := opened(t, "inspect", "--no-open", "everything")
	for _, call := range []struct{ tool, field, value string }{{"slow_compute", "seconds", "2"}, {"confirm_delete", "filename", "old.txt"}, {"slow_compute", "seconds", "600"}} {
		find(p, call.tool, call.tool)
		fill(p, call.field, call.value)
		p.Press("button", "Call")
		p.Until(`!!document.querySelector("section.result .status")`)
	}
	p.Press("link", "Tasks")
	p.Until(`document.querySelectorAll("main tbody tr").length === 3`)
	p.Reads("Delete old.txt?")
	choose(p, "Yes?", "true")
	p.Press("button", "Accept")
	p.Until(`[...document.querySelectorAll("main tbody .status")].filter((s) => s.textContent.includes("ok")).length === 2`) // no button moves any more
	p.Press("button", "result of confirm_delete")
	p.Reads("old.txt was deleted.")
	p.Press("button", "result of slow_compute")
	p.Reads("took 2 seconds")
	p.GoTo(origin + "/tasks") // a reload does not lose the one that is open
	p.Reads("from before the page was loaded again")
	p.Press("button", "cancel the task of slow_compute")
	p.Until(`document.querySelector("main tbody .status")?.textContent.includes("canceled")`)
	p.GoTo(origin + "/wire?q=method:tasks/cancel+hop:servers")
	p.Until(`document.querySelector(".wire-box").textContent.includes("tasks/cancel")`)
}

// A view that is made with the official SDK shows the result of its tool, calls another one at the press of its button,
// and follows the theme of the page.
func TestUseOfficialView(t *testing.T) {
	sdk, err := os.ReadFile(npm.File("node_modules", "@modelcontextprotocol", "ext-apps", "dist", "src", "app-with-deps.js"))
	if err != nil {
		npm.Node(t)
		t.Fatal(err)
	}
	app := regexp.MustCompile(`([\w$]+) as App[,}]`).FindSubmatch(sdk)
	if app == nil || strings.Contains(string(sdk), "</script") {
		t.Fatal("the SDK is not as it was")
	}
	v := newViewer(t)
	v.ui.AddView(apps.View{URI: "ui://views/official", Name: "official", HTML: `<!DOCTYPE html><html lang="en"><title>v</title><button>again</button><script type="module">` + string(sdk) + `
		const app = new ` + string(app[1]) + `({name: "official", version: "1"}, {});
		let last; // calls at once may come in any order
		const report = (v) => last = Promise.resolve(last).then(() => app.callServerTool({name: "report", arguments: {text: JSON.stringify(v)}}));
		app.ontoolinput = (p) => report({input: p.arguments});
		app.ontoolresult = (p) => report({result: p.content[0].text});
		app.onhostcontextchanged = (c) => c.theme && report({theme: c.theme});
		document.querySelector("button").onclick = async () => report({answer: (await app.callServerTool({name: "official", arguments: {name: "button"}})).content[0].text});
		await app.connect();
	</script></html>`})
	type in struct {
		Name string `json:"name"`
	}
	apps.AddTool(v.ui, mcp.Tool{Name: "official"}, apps.Link{ResourceURI: "ui://views/official"}, func(_ context.Context, in in) (string, error) { return "for " + in.Name, nil })
	server := strings.Split(browser.Eval[string](v.p, `location.pathname`), "/")[2]
	v.p.GoTo(v.origin + "/apps/" + server)
	v.p.Press("link", "official")
	fill(v.p, "name", "Ada")
	v.p.Press("button", "Call")
	var got []string
	for range 2 {
		r := v.reported()
		if in, ok := r["input"].(map[string]any); ok {
			got = append(got, "input "+in["name"].(string))
		} else {
			got = append(got, "result "+r["result"].(string))
		}
	}
	if want := []string{"input Ada", "result for Ada"}; !slices.Equal(got, want) {
		t.Errorf("the view was told %q, want %q", got, want)
	}
	for try := 1; ; try++ { // the frame is in a process of its own, which may not be ready for the mouse
		at := browser.Eval[[]float64](v.p, `(() => { const f = document.querySelector("iframe"); f.scrollIntoView({block: "center"}); const r = f.getBoundingClientRect(); return [r.left + 30, r.top + 18] })()`)
		v.p.Do(chromedp.MouseClickXY(at[0], at[1]))
		select {
		case r := <-v.reports:
			if r["answer"] != "for button" {
				t.Errorf("the view got %v", r)
			}
		case <-time.After(3 * time.Second):
			if try < 10 {
				continue
			}
			t.Fatalf("the button of the view cannot be pressed\n%s", v.p.Sees())
		}
		break
	}
	browser.Eval[bool](v.p, `(() => { const s = [...document.querySelectorAll("section.result select")].find(s => s.value === "light"); s.value = "dark"; s.dispatchEvent(new Event("change", {bubbles: true})); return true })()`)
	for r := v.reported(); r["theme"] != "dark"; r = v.reported() {
		if r["answer"] == nil { // the answer to a click that was late
			t.Fatalf("the view is told %v", r)
		}
	}
}
