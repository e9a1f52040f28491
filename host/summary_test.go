package host_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// Send summarises a conversation before the window is full: the message stays as it is, no event has
// pieces of the summary, and Undo undoes the summary with its turn. SummariseAt sets when, and a
// negative one that it never happens.
func TestSummaryBeforeTheWindowIsFull(t *testing.T) {
	for _, tt := range []struct {
		at   int
		want string // the messages before which a summary was written
	}{{-1, ""}, {0, "4"}, {600, "3 5"}} {
		t.Run(fmt.Sprint(tt.at), func(t *testing.T) {
			m := &talker{info: model.Info{Window: 1200}, answers: []answer{func(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Response, error) {
				if r.Choice.Mode == "none" {
					return say("Long words were said.")(ctx, r, emit)
				}
				return say("Yes.")(ctx, r, emit)
			}}}
			d := &diary{}
			c := newHost(t, &host.Host{Model: m, Limits: host.Limits{SummariseAt: tt.at}}).NewConversation()
			c.OnEvent = d.note
			var before []string
			for i := range 5 {
				n := len(d.of(host.Summarised))
				text := fmt.Sprintf("message %d %s", i+1, strings.Repeat("long ", 200))
				if r, err := c.Send(t.Context(), text); err != nil || r.Text != "Yes." || r.Steps != 1 {
					t.Fatalf("Send = %+v, %v", r, err)
				}
				got := lastText(m.request(t, m.asked()-1))
				summed := len(d.of(host.Summarised)) > n
				if !strings.HasSuffix(got, text) || summed && !strings.Contains(got, "Long words were said.") {
					t.Errorf("message %d became %.300q", i+1, got)
				}
				if summed {
					before = append(before, fmt.Sprint(i+1))
				}
			}
			if got := strings.Join(before, " "); got != tt.want {
				t.Errorf("summaries before the messages %q, want %q", got, tt.want)
			}
			for _, e := range d.of(host.TextCame) {
				if strings.Contains(e.Text, "Long") {
					t.Errorf("a piece of the summary is told as a piece of the answer: %+v", e)
				}
			}
			for _, e := range d.of(host.Summarised) {
				if e.Text != "Long words were said." || e.Before <= e.After || e.Usage == nil {
					t.Errorf("%+v", e)
				}
			}
			entries := len(c.Snapshot())
			if said, err := c.Undo(t.Context()); err != nil || !strings.HasPrefix(said, "message 5") {
				t.Errorf("Undo = %.20q, %v", said, err)
			}
			if n := entries - len(c.Snapshot()); n != 2 && !strings.Contains(tt.want, "5") || n != 3 && strings.Contains(tt.want, "5") {
				t.Errorf("Undo has removed %d entries", n)
			}
		})
	}
}

// The request for a summary says what matters to the person, and the attachments of messages stay
// beside it: the newest, up to a quarter of the window.
func TestSummaryKeepsWhatWasAttached(t *testing.T) {
	m := &talker{info: model.Info{Window: 8000}, answers: []answer{say("Yes.")}}
	c := newHost(t, &host.Host{Model: m, Limits: host.Limits{SummariseAt: -1}}).NewConversation()
	for i := range 3 {
		if _, err := c.Send(t.Context(), fmt.Sprint("question ", i), model.Part{Text: fmt.Sprintf("attached %d %s", i, strings.Repeat("word ", 500))}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Summarise(t.Context(), " the names "); err != nil {
		t.Fatal(err)
	}
	if got := lastText(m.request(t, 3)); !strings.HasSuffix(got, "matters most: the names") {
		t.Errorf("the summary is asked for with %.500q", got)
	}
	if _, err := c.Send(t.Context(), "and now?"); err != nil {
		t.Fatal(err)
	}
	got := lastText(m.request(t, 4))
	for text, want := range map[string]bool{"attached 0": false, "attached 1": true, "attached 2": true, "question": false, "Yes.": true, "and now?": true} {
		if strings.Contains(got, text) != want {
			t.Errorf("%q is in the request: %v, want %v", text, !want, want)
		}
	}
}
