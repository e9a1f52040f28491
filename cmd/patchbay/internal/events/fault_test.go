package events_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/events"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// denied tells of a call that nobody could approve, and why an approval was asked for again.
func denied(t *events.Teller, id, tool, doubt string) {
	t.Event(host.Event{Kind: host.Waiting, Text: doubt, Call: &host.CallEvent{ID: id, Server: "d", Tool: tool}})
	t.Event(host.Event{Kind: host.Resulted, Call: &host.CallEvent{ID: id, Server: "d", Tool: tool, By: "nobody", Outcome: host.Denied}})
}

// The hint of a denied call repeats the command with all that it must allow. A call that may have
// run before cannot be allowed by a flag, so none is proposed.
func TestFaultOfDeniedCalls(t *testing.T) {
	whole := &host.Reply{Text: "I may not.", Stop: model.StopEnd}
	again := func(flags ...string) string { return "again " + strings.Join(flags, " ") }
	for _, tt := range []struct {
		name      string
		deny      func(*events.Teller)
		err, hint string
	}{
		{"not allowed", func(t *events.Teller) { denied(t, "1", "die", ""); denied(t, "2", "die", "") }, "not allowed, so not called: d/die", "again --allow d/live --allow d/die"},
		{"in doubt", func(t *events.Teller) { denied(t, "1", "live", "it may have happened") }, "not called again, as it may have happened before: d/live", "see whether"},
	} {
		teller := &events.Teller{Talk: &terminal.Talk{W: io.Discard}, Allowed: []string{"d/live"}}
		tt.deny(teller)
		var f *advice.Error
		if err := teller.Fault(whole, again); !errors.As(err, &f) || f.Code != advice.ExitDenied || f.Error() != tt.err || !strings.HasPrefix(f.Next, tt.hint) || slices.Contains(strings.Fields(f.Next), "--allow") != (tt.name == "not allowed") {
			t.Errorf("%s: Fault = %v, with the hint %q; want %q and %q", tt.name, err, f.Next, tt.err, tt.hint)
		}
	}
	if err := new(events.Teller).Fault(whole, again); err != nil {
		t.Errorf("a whole answer: Fault = %v", err)
	}
}
