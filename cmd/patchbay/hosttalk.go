package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// telling shows what happens in a conversation: a line for each call and result on standard
// error, or with --json each event on standard output. A host tells it one event after the other.
type telling struct {
	a      *app
	nobody bool // there is no person to ask

	said    string   // of the model: its answer, or, if it wants tools called, talk
	calls   int      // that were made
	refused []string // SERVER/TOOL that nobody could be asked about
	err     error    // of standard output
}

func (t *telling) event(e host.Event) {
	if t.a.JSON {
		t.line(e)
	}
	switch e.Kind {
	case host.Asking:
		t.aside()
		t.a.talk.Status("waiting for " + e.Model)
	case host.Answered:
		t.said = e.Text
	case host.Again:
		t.a.talk.Note("asked again: %s", oneLine(e.Text))
	case host.Noted:
		t.a.talk.Note("%s", oneLine(e.Text))
	case host.Retried:
		t.a.talk.Note("%s is called again: %s", toolOf(e.Call), oneLine(e.Text))
	case host.Logged:
		t.a.talk.Note("%s: %s", oneLine(e.Call.Server), oneLine(e.Text))
	case host.Called:
		t.aside()
		t.note("→ "+toolOf(e.Call), string(e.Call.Arguments))
	case host.Progress:
		t.a.talk.Progress(mcp.ProgressEvent{Done: e.Call.Done, Total: e.Call.Total, Message: e.Text})
	case host.Resulted:
		t.result(e.Call)
	}
	if e.Kind == host.Answered || e.Kind == host.Ended {
		t.a.talk.EndProgress()
	}
}

// line writes an event as a line of JSON, at once.
func (t *telling) line(e host.Event) {
	data, err := json.Marshal(e)
	if err == nil {
		t.a.print(t.a.shown(string(data)))
		err = t.a.out.Flush()
	}
	if t.err == nil {
		t.err = err
	}
}

// aside shows what the model has said beside its calls.
func (t *telling) aside() {
	if t.said != "" && !t.a.talk.Quiet {
		t.a.talk.Always(t.a.talk.Paint(wrap(visible(strings.TrimSpace(t.said)), t.a.tty.errWidth), "2"))
	}
	t.said = ""
}

func (t *telling) result(c *host.CallEvent) {
	name := toolOf(c)
	what := string(c.Outcome)
	switch {
	case c.Outcome == host.Denied && t.nobody:
		if !slices.Contains(t.refused, name) {
			t.refused = append(t.refused, name)
		}
		what = "not allowed"
	case c.Outcome == host.Succeeded:
		what = c.Took.Round(time.Millisecond).String()
		if c.Cached {
			what = "kept"
		}
	}
	if c.Outcome != host.Denied && c.Outcome != host.Invalid {
		t.calls++
	}
	t.note("← "+name+" "+what+":", shortOf(c.Parts))
}

// note writes a line of which the second part may be cut.
func (t *telling) note(head, text string) {
	if t.a.talk.Quiet {
		return
	}
	width := t.a.tty.errWidth
	if width <= 0 {
		width = 160
	}
	t.a.talk.Always(cut("patchbay: "+visible(head)+" "+oneLine(clip(text)), width))
}

// toolOf names the tool of a call as --allow does.
func toolOf(c *host.CallEvent) string {
	if c.Server == "" {
		return oneLine(c.Tool)
	}
	return oneLine(c.Server + "/" + c.Tool)
}

// shortOf words parts in a line.
func shortOf(parts []model.Part) string {
	var out []string
	for _, p := range parts {
		switch {
		case p.Media != nil:
			out = append(out, "["+p.Media.MIME+" "+bytesOf(len(p.Media.Data))+"]")
		case p.Text != "":
			out = append(out, clip(p.Text))
		}
	}
	return strings.Join(out, " ")
}

// sum tells what a turn took.
func (t *telling) sum(r *host.Reply, took time.Duration) {
	text := fmt.Sprintf("%s, %s, %d+%d tokens", quantity(r.Steps, "step"), quantity(t.calls, "call"), r.Usage.Input, r.Usage.Output)
	if r.Cost > 0 {
		text += fmt.Sprintf(", cost %.4f", r.Cost)
	}
	t.a.talk.Note("%s, %v", text, took.Round(100*time.Millisecond))
}
