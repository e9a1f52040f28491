// Package events reports the events of a conversation with a language model to a person or a
// program.
package events

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// Teller reports the events of a conversation: a line on the talk for each call and result, and
// each event as JSON if JSON is set. A host calls it for one event at a time. Its exported fields
// are set before it is used.
type Teller struct {
	Talk    *terminal.Talk
	Width   int                     // of the terminal, in columns; 0: no terminal
	JSON    func(line string) error // writes an event at once; nil: no JSON
	Allowed []string                // what --allow allows

	// Out is standard output if it is a terminal that shows the texts of the model while they come,
	// rendered for Paper. Nil: texts beside calls are lines on the talk, and the answer is not shown.
	Out   *bufio.Writer
	Paper screen.Paper

	Refused []string // SERVER/TOOL of denied calls that nobody could approve
	Shown   bool     // the last text of the model is on Out
	Err     error    // the first error of JSON or Out

	began  time.Time
	said   string          // the model's last text: its answer, or text beside calls
	calls  int             // number of calls made
	doubts map[string]bool // ids of calls that only a person can approve, as they may have run before
	lost   []string        // SERVER/TOOL of such calls that nobody could approve
	text   strings.Builder
	stream screen.Stream // of text
}

// Event reports an event.
func (t *Teller) Event(e host.Event) {
	if t.JSON != nil {
		t.line(e)
	}
	if t.began.IsZero() {
		t.began = time.Now()
	}
	switch e.Kind {
	case host.Asking:
		t.aside()
		t.Talk.Status("waiting for " + e.Model)
	case host.Summarising:
		t.aside()
		t.Talk.Status("summarising the conversation")
	case host.Summarised:
		t.Talk.Note("summarised the conversation, about %d tokens to %d", e.Before, e.After)
	case host.TextCame:
		if t.Out != nil {
			t.text.WriteString(e.Text)
			t.show(false)
		}
	case host.Answered:
		t.said = e.Text
		t.answered()
	case host.Again, host.Noted:
		if e.Kind == host.Again {
			t.void()
		}
		t.Talk.Note("%s", screen.OneLine(e.Text))
	case host.Retried:
		t.Talk.Note("%s: %s", toolOf(e.Call), screen.OneLine(e.Text))
	case host.Logged:
		t.Talk.Note("%s: %s", screen.OneLine(e.Call.Server), screen.OneLine(e.Text))
	case host.Called:
		t.aside()
		t.note("→ "+toolOf(e.Call), string(e.Call.Arguments))
	case host.Waiting:
		if e.Text != "" {
			if t.doubts == nil {
				t.doubts = map[string]bool{}
			}
			t.doubts[e.Call.ID] = true
		}
	case host.Progress:
		t.Talk.ProgressOf(toolOf(e.Call), e.Call.Done, e.Call.Total, e.Text)
	case host.Resulted:
		t.result(e.Call)
	}
	if e.Kind == host.Answered || e.Kind == host.Ended {
		t.Talk.EndProgress()
	}
}

// show writes the text of the model that is final to Out, and the rest of it as the status.
func (t *Teller) show(all bool) {
	lines := t.stream.Settled(t.text.String(), all, t.Paper)
	if n := len(lines); all && n > 0 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	if len(lines) == 0 {
		if !all {
			t.Talk.Status(tail(t.text.String(), t.Paper.Width-1))
		}
		return
	}
	t.Talk.EndProgress() // the terminal of both is the same
	t.Out.WriteString(strings.Join(lines, "\n") + "\n")
	if err := t.Out.Flush(); t.Err == nil {
		t.Err = err
	}
}

// tail returns the end of a text in one line of at most most columns.
func tail(text string, most int) string {
	line := screen.OneLine(strings.ToValidUTF8(text[max(0, len(text)-4*max(most, 1)):], ""))
	for screen.Columns(line) > most && line != "" {
		_, n := utf8.DecodeRuneInString(line)
		line = line[n:]
	}
	return line
}

// answered ends the text of the model, which may not have come in pieces.
func (t *Teller) answered() {
	if t.Out == nil {
		return
	}
	if !t.stream.Begun() {
		t.void()
		t.text.WriteString(t.said)
	}
	t.show(true)
	if t.Shown = t.text.String() == t.said; t.Shown {
		t.said = ""
	}
	t.void()
}

// void drops the text of the model so far.
func (t *Teller) void() {
	t.text.Reset()
	t.stream = screen.Stream{}
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
	case c.Outcome == host.Denied && c.By == "nobody":
		list := &t.Refused
		if t.doubts[c.ID] {
			list = &t.lost
		}
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
		what = "not allowed"
	case c.Outcome == host.Succeeded:
		what = time.Duration(c.Took).Round(time.Millisecond).String()
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

// Sum prints the steps, calls, tokens, cost and time of a turn, if there was one.
func (t *Teller) Sum(r *host.Reply) {
	t.Talk.EndProgress()
	if r == nil {
		return
	}
	text := fmt.Sprintf("%s, %s, %d+%d tokens", screen.Quantity(r.Steps, "step"), screen.Quantity(t.calls, "call"), r.Usage.Input, r.Usage.Output)
	if r.Cost > 0 {
		text += fmt.Sprintf(", cost %.4f", r.Cost)
	}
	t.Talk.Note("%s, %v", text, time.Since(t.began).Round(100*time.Millisecond))
}
