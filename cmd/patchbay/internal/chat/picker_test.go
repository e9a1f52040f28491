package chat

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/memory"
)

// ctrl-R finds an earlier message by words in any order. Enter puts it into the input and does not send
// it; esc leaves the input as it was. A key of a question does not go to the search.
func TestSearchInHistory(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		press(u, "ctrl+r")
		wants(t, p, "no earlier messages")
		u.history.said = []string{"list the Tables of shop", "two\nlines", "drop the tables", "hello", "drop the tables"}
		u.history.at = len(u.history.said)
		typed(u, "draft")
		press(u, "ctrl+r")
		wants(t, p, "search: ", "› drop the tables", "  hello", "  two lines", "  list the Tables of shop")
		if n := strings.Count(p.text(), "drop the tables"); n != 1 {
			t.Errorf("a message that was sent twice is offered %d times", n)
		}
		typed(u, "tables")
		press(u, "ctrl+r")
		wants(t, p, "search: tables", "› list the Tables of shop")
		typed(u, " shop")
		wants(t, p, "› list the Tables of shop")
		typed(u, "x")
		wants(t, p, "(nothing)")
		press(u, "enter", "esc")
		if got := u.input.String(); got != "draft" || u.picker != nil {
			t.Errorf("after esc the input is %q, and the search open: %v", got, u.picker != nil)
		}
		press(u, "ctrl+r")
		u.paste("two")
		press(u, "enter")
		if got := u.input.String(); got != "two\nlines" || u.turn != nil {
			t.Errorf("the input is %q, and something is in progress: %v", got, u.turn != nil)
		}
		u.history.said = append(u.history.said, strings.Repeat("0123456789", 8))
		press(u, "ctrl+r")
		wants(t, p, "› "+strings.Repeat("0123456789", 6)+"01234…")
		press(u, "ctrl+c")
		if u.picker != nil || u.input.empty() {
			t.Error("ctrl-C does not close the search alone")
		}
	})
}

// A question that appears while the person searches takes keys only when they have stopped typing.
func TestQuestionDuringSearch(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "call lines")
		press(u, "enter", "ctrl+r")
		collectMail(u)
		typed(u, "y")
		if len(u.questions) != 1 || u.picker == nil || u.picker.words.String() != "y" {
			t.Fatalf("%d questions; a key of the search answers", len(u.questions))
		}
		settle(u)
		press(u, "n")
		settle(u)
		wants(t, p, "⊘ theatre/lines", "search: y")
	})
}

// twoTalks has two conversations.
type twoTalks struct{ resumed string }

func (s *twoTalks) Keep(*host.Conversation) {}

func (s *twoTalks) List(_ context.Context, words string) ([]Past, error) {
	at := time.Date(2026, 11, 2, 12, 0, 0, 0, time.Local)
	all := []Past{{"aaaa", "two \x1b[31mstoves", at, 4}, {"bbbb", "the tables", at, 2}}
	if words != "" {
		all = all[1:]
	}
	return all, nil
}

func (s *twoTalks) Resume(_ context.Context, h *host.Host, id string) (*host.Conversation, error) {
	if id != "aaaa" && id != "bbbb" {
		return nil, fmt.Errorf("%s: %w", id, memory.ErrNone)
	}
	s.resumed = id
	c := h.NewConversation()
	c.ID = id
	return c, nil
}

func (s *twoTalks) Forget(context.Context, string) error { return nil }

// /resume without an ID, and the flag --resume without one, show the earlier conversations to choose
// from. A first message waits until one is chosen.
func TestChooseConversation(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		s := &twoTalks{}
		u.c.o.Memory = s
		typed(u, "/resume")
		press(u, "enter")
		settle(u)
		wants(t, p, "resume: ", "› aaaa  2026-11-02 12:00 two ␛[31mstoves", "  bbbb")
		typed(u, "tab")
		press(u, "enter")
		settle(u)
		wants(t, p, "continuing bbbb")
		if s.resumed != "bbbb" {
			t.Errorf("resumed %q", s.resumed)
		}
		typed(u, "/resume tables")
		press(u, "enter")
		settle(u)
		press(u, "esc")
		if u.picker != nil || s.resumed != "bbbb" {
			t.Error("esc chooses")
		}
		u.c.o.Choose, u.c.o.First = true, "and then?"
		again := newUI(u.c, p, u.size, nil)
		again.Init()
		settle(again)
		wants(t, p, "resume: ")
		press(again, "enter")
		settle(again)
		if s.resumed != "aaaa" || again.input.String() != "and then?" || again.turn != nil {
			t.Errorf("resumed %q, input %q", s.resumed, again.input.String())
		}
	})
}

// A question that waits rings once: after a while without a key if the terminal does not say whether
// the person looks at it, at once if it says that they do not, and never if they do.
func TestBell(t *testing.T) {
	ask := func(u *ui) {
		typed(u, "call lines")
		press(u, "enter")
		settle(u)
	}
	deny := func(u *ui) {
		press(u, "n")
		settle(u)
	}
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		ask(u)
		if p.out != "" {
			t.Fatalf("%q is written before the person had time to answer", p.out)
		}
		time.Sleep(waits)
		settle(u)
		if p.out != "\a" {
			t.Errorf("%q is written", p.out)
		}
		time.Sleep(time.Minute)
		settle(u)
		deny(u)
		u.Update(tea.FocusMsg{})
		ask(u)
		time.Sleep(time.Minute)
		settle(u)
		u.Update(tea.BlurMsg{}) // they have seen it
		settle(u)
		if p.out != "\a" {
			t.Errorf("%q is written while the person looks", p.out)
		}
		deny(u)
		ask(u)
		if p.out != "\a\a" {
			t.Errorf("%q is written while the person is away", p.out)
		}
		deny(u)
		p.out, u.c.o.Bell = "", "off"
		ask(u)
		deny(u)
		if p.out != "" {
			t.Errorf("%q is written though the bell is off", p.out)
		}
		u.c.o.Bell = "desktop"
		ask(u)
		if p.out != "\x1b]9;patchbay: theatre waits for your answer\a" {
			t.Errorf("%q is written", p.out)
		}
		p.out = ""
		u.questions[0].server, u.questions[0].rung = "x\x1b]0;y\a", false
		settle(u)
		if strings.Count(p.out, "\x1b") != 1 || strings.Count(p.out, "\a") != 1 {
			t.Errorf("the name of a server ends the notification: %q", p.out)
		}
	})
}
