package chat

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
)

// saying runs a test with a UI, and a function that sends it events of the conversation.
func saying(t *testing.T, f func(t *testing.T, u *ui, p *paper, tell func(host.EventKind, string))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		u, p := newTestUI(t, &host.Host{}, Options{})
		f(t, u, p, func(kind host.EventKind, text string) {
			e := host.Event{Kind: kind, Time: time.Now(), Text: text}
			if kind == host.Started || kind == host.Resulted {
				e.Text, e.Call = "", &host.CallEvent{ID: text, Server: "s", Tool: text, Outcome: host.Succeeded}
			}
			u.c.mail.put(happened{u.talk, e})
			u.Update(mailed{})
		})
	})
}

// TestPrintDuringAnswer: printed lines do not interrupt an answer in progress, and appear at once.
func TestPrintDuringAnswer(t *testing.T) {
	saying(t, func(t *testing.T, u *ui, p *paper, tell func(host.EventKind, string)) {
		tell(host.TextCame, "One **bo")
		for _, line := range []string{"a note", "another"} {
			u.c.Write([]byte(line))
			u.Update(mailed{})
		}
		tell(host.TextCame, "ld** word.\n\nAnd")
		u.input.set("/servers")
		press(u, "enter")
		if above := strings.Join(p.above, "\n"); !strings.Contains(above, "• a note") || !strings.Contains(above, "• another") || !strings.Contains(above, "no servers") {
			t.Errorf("what was printed is not above the answer:\n%s", p.text())
		}
		tell(host.TextCame, " more.")
		tell(host.Answered, "")
		if above := strings.Join(p.above, "\n"); !strings.Contains(above, "One **bold** word.\n") || !strings.Contains(above, "\nAnd more.") || len(u.blocks) > 0 {
			t.Errorf("the answer is broken, or %d blocks are not over:\n%s", len(u.blocks), p.text())
		}
		if n := strings.Count(p.text(), "more."); n != 1 {
			t.Errorf("the end of the answer is there %d times:\n%s", n, p.text())
		}
	})
}

// TestPrintDuringThought: a thought ends when the answer begins, whatever was printed meanwhile.
func TestPrintDuringThought(t *testing.T) {
	saying(t, func(t *testing.T, u *ui, p *paper, tell func(host.EventKind, string)) {
		tell(host.Thought, "Hm")
		tell(host.Noted, "a note")
		tell(host.Thought, "m.")
		tell(host.TextCame, "Yes.")
		tell(host.Noted, "another")
		tell(host.Again, "it was lost")
		tell(host.TextCame, "No.")
		tell(host.Answered, "")
		above := strings.Join(p.above, "\n")
		if strings.Count(above, "thought for") != 1 || strings.Contains(above, "Yes.") || !strings.Contains(above, "No.") || len(u.blocks) > 0 {
			t.Errorf("want one thought and one answer:\n%s", p.text())
		}
	})
}

// TestPrintDuringCall: a long call does not delay printed lines.
func TestPrintDuringCall(t *testing.T) {
	saying(t, func(t *testing.T, u *ui, p *paper, tell func(host.EventKind, string)) {
		tell(host.Started, "slow")
		tell(host.Noted, "a note")
		if above := strings.Join(p.above, "\n"); !strings.Contains(above, "• a note") {
			t.Errorf("a note waits for a call:\n%s", p.text())
		}
		tell(host.Resulted, "slow")
		if above := strings.Join(p.above, "\n"); !strings.Contains(above, "✓ s/slow") {
			t.Errorf("the call is not over:\n%s", p.text())
		}
	})
}

// slowMemory finds a conversation when the test permits it.
type slowMemory struct{ let chan struct{} }

func (slowMemory) Keep(*host.Conversation)                      {}
func (slowMemory) Forget(context.Context, string) error         { return nil }
func (slowMemory) List(context.Context, string) ([]Past, error) { return nil, nil }
func (m slowMemory) Resume(_ context.Context, h *host.Host, _ string) (*host.Conversation, error) {
	<-m.let
	return h.NewConversation(), nil
}

// TestResumeDuringTurn: a conversation that is found during a turn does not replace that of the
// turn.
func TestResumeDuringTurn(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		m := slowMemory{make(chan struct{})}
		u.c.o.Memory = m
		typed(u, "/resume x")
		press(u, "enter")
		typed(u, "hang")
		press(u, "enter")
		settle(u)
		before := u.talk
		close(m.let)
		settle(u)
		if u.talk != before {
			t.Error("the conversation is another in the middle of a turn")
		}
		wants(t, p, "• cannot resume a conversation during a turn", "I begin, and")
		press(u, "ctrl+c")
		settle(u)
	})
}
