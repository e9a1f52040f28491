package events

import (
	"bufio"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/host"
)

// A terminal shows the texts of the model while they come: finished paragraphs on standard output, and
// the end of the text as the status. An answer that starts over is shown again, a text beside calls once.
func TestTextsAsTheyCome(t *testing.T) {
	var out, said strings.Builder
	w := bufio.NewWriter(&out)
	told := &Teller{Talk: &terminal.Talk{W: &said, TTY: true, Width: 40}, Width: 40, Out: w, Paper: screen.Paper{Width: 40}}
	want := func(what, has string) {
		t.Helper()
		if out.String() != has || told.Err != nil {
			t.Errorf("%s: standard output has %q, want %q; %v", what, &out, has, told.Err)
		}
	}
	text := func(s string) { told.Event(host.Event{Kind: host.TextCame, Text: s}) }
	told.Event(host.Event{Kind: host.Asking, Model: "m"})
	text("The first ")
	want("in the first paragraph", "")
	if !strings.HasSuffix(said.String(), "\rThe first\x1b[K") {
		t.Errorf("the status is %q, want the text", &said)
	}
	text("paragraph.\n\nThe *sec")
	want("after the first paragraph", "The first paragraph.\n")
	told.Event(host.Event{Kind: host.Again, Text: "retrying"})
	text("Anew.\n\n")
	want("after a new beginning", "The first paragraph.\nAnew.\n")
	text("Done.")
	told.Event(host.Event{Kind: host.Answered, Text: "Anew.\n\nDone."})
	want("at the end", "The first paragraph.\nAnew.\n\nDone.\n")
	if !told.Shown {
		t.Error("the answer does not count as shown")
	}
	told.Event(host.Event{Kind: host.Called, Call: &host.CallEvent{Server: "s", Tool: "t"}})
	if strings.Contains(said.String(), "Done.\n") {
		t.Errorf("standard error has %q, which repeats the text", &said)
	}
	told.Event(host.Event{Kind: host.Answered, Text: "At once."}) // by a model that does not stream
	want("at once", "The first paragraph.\nAnew.\n\nDone.\nAt once.\n")
	if got := tail("übung macht den Meister", 12); got != "den Meister" && got != " den Meister" {
		t.Errorf("the tail is %q", got)
	}
}

// Without a terminal nothing is written before the end, and texts beside calls are lines.
func TestTextsWithoutATerminal(t *testing.T) {
	var said strings.Builder
	told := &Teller{Talk: &terminal.Talk{W: &said}}
	told.Event(host.Event{Kind: host.TextCame, Text: "Hm.\n\nHm."})
	if said.String() != "" || told.Shown {
		t.Errorf("standard error has %q", &said)
	}
	told.Event(host.Event{Kind: host.Answered, Text: "Hm."})
	told.Event(host.Event{Kind: host.Called, Call: &host.CallEvent{Server: "s", Tool: "t"}})
	if got := said.String(); !strings.HasPrefix(got, "Hm.\n") || told.Shown {
		t.Errorf("standard error has %q", got)
	}
}
