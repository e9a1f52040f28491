// Package events reports the events of a conversation with a language model to a person or a
// program.
package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// Teller reports the events of a conversation: a line on the talk for each call and result, and
// each event as JSON if JSON is set. A host calls it for one event at a time. Its exported fields
// are set before it is used.
type Teller struct {
	Talk   *terminal.Talk
	Width  int                     // of the terminal, in columns; 0: no terminal
	JSON   func(line string) error // writes an event at once; nil: no JSON
	Nobody bool                    // there is no person to ask

	Refused []string // SERVER/TOOL of denied calls that nobody could approve
	Err     error    // the first error of JSON

	said  string // the model's last text: its answer, or text beside calls
	calls int    // number of calls made
}

// Event reports an event.
func (t *Teller) Event(e host.Event) {
	if t.JSON != nil {
		t.line(e)
	}
	switch e.Kind {
	case host.Asking:
		t.aside()
		t.Talk.Status("waiting for " + e.Model)
	case host.Answered:
		t.said = e.Text
	case host.Again, host.Noted:
		t.Talk.Note("%s", screen.OneLine(e.Text))
	case host.Retried:
		t.Talk.Note("%s: %s", toolOf(e.Call), screen.OneLine(e.Text))
	case host.Logged:
		t.Talk.Note("%s: %s", screen.OneLine(e.Call.Server), screen.OneLine(e.Text))
	case host.Called:
		t.aside()
		t.note("→ "+toolOf(e.Call), string(e.Call.Arguments))
	case host.Progress:
		t.Talk.Progress(e.Call.Done, e.Call.Total, e.Text)
	case host.Resulted:
		t.result(e.Call)
	}
	if e.Kind == host.Answered || e.Kind == host.Ended {
		t.Talk.EndProgress()
	}
}

// line writes an event as a line of JSON.
func (t *Teller) line(e host.Event) {
	data, err := json.Marshal(e)
	if err == nil {
		err = t.JSON(string(data))
	}
	if t.Err == nil {
		t.Err = err
	}
}

// aside prints the text that the model wrote beside its calls.
func (t *Teller) aside() {
	if t.said != "" && !t.Talk.Quiet {
		t.Talk.Always(t.Talk.Paint(screen.Wrap(screen.Visible(strings.TrimSpace(t.said)), t.Width), "2"))
	}
	t.said = ""
}

func (t *Teller) result(c *host.CallEvent) {
	name := toolOf(c)
	what := string(c.Outcome)
	switch {
	case c.Outcome == host.Denied && t.Nobody:
		if !slices.Contains(t.Refused, name) {
			t.Refused = append(t.Refused, name)
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

// note writes a line; the second part may be cut.
func (t *Teller) note(head, text string) {
	if t.Talk.Quiet {
		return
	}
	width := t.Width
	if width <= 0 {
		width = 160
	}
	t.Talk.Always(screen.Cut("patchbay: "+screen.Visible(head)+" "+screen.OneLine(screen.Clip(text)), width))
}

// toolOf returns the tool of a call in the form of --allow.
func toolOf(c *host.CallEvent) string {
	if c.Server == "" {
		return screen.OneLine(c.Tool)
	}
	return screen.OneLine(c.Server + "/" + c.Tool)
}

// shortOf returns parts as one line.
func shortOf(parts []model.Part) string {
	var out []string
	for _, p := range parts {
		switch {
		case p.Media != nil:
			out = append(out, "["+p.Media.MIME+" "+screen.Bytes(len(p.Media.Data))+"]")
		case p.Text != "":
			out = append(out, screen.Clip(p.Text))
		}
	}
	return strings.Join(out, " ")
}

// Sum prints the steps, calls, tokens, cost and time of a turn.
func (t *Teller) Sum(r *host.Reply, took time.Duration) {
	text := fmt.Sprintf("%s, %s, %d+%d tokens", screen.Quantity(r.Steps, "step"), screen.Quantity(t.calls, "call"), r.Usage.Input, r.Usage.Output)
	if r.Cost > 0 {
		text += fmt.Sprintf(", cost %.4f", r.Cost)
	}
	t.Talk.Note("%s, %v", text, took.Round(100*time.Millisecond))
}
