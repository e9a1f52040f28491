package chat

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	approvals "github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// paper is a canvas that records its output.
type paper struct {
	above []string
	frame frame
	out   string
}

var _ canvas = (*paper)(nil)

func (p *paper) show(above []string, f frame) { p.above, p.frame = append(p.above, above...), f }
func (p *paper) redraw()                      {}
func (p *paper) emit(s string)                { p.out += s }

// text returns all output, as it appears on the terminal.
func (p *paper) text() string {
	return strings.Join(p.above, "\n") + "\n----\n" + strings.Join(p.frame.lines, "\n")
}

// newTestUI returns a UI of 80 by 24 without colours, on paper. It is for synctest bubbles, in
// which time is controlled.
func newTestUI(t *testing.T, h *host.Host, o Options) (*ui, *paper) {
	t.Helper()
	p := &paper{}
	c := New(h, o)
	t.Cleanup(c.cancel)
	u := newUI(c, p, func() (int, int, error) { return 80, 24, nil }, nil)
	u.Update(ticked{})
	return u, p
}

// press presses keys by their names, and "space" for a space.
func press(u *ui, keys ...string) {
	for _, k := range keys {
		u.Update(keyOf(k))
	}
}

func keyOf(name string) tea.KeyPressMsg {
	special := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
		"right": tea.KeyRight, "backspace": tea.KeyBackspace, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "home": tea.KeyHome, "end": tea.KeyEnd,
	}
	var k tea.KeyPressMsg
	for {
		if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
			name, k.Mod = rest, k.Mod|tea.ModCtrl
		} else if rest, ok := strings.CutPrefix(name, "alt+"); ok {
			name, k.Mod = rest, k.Mod|tea.ModAlt
		} else if rest, ok := strings.CutPrefix(name, "shift+"); ok {
			name, k.Mod = rest, k.Mod|tea.ModShift
		} else {
			break
		}
	}
	switch code, ok := special[name]; {
	case ok:
		k.Code = code
	case name == "space":
		k.Code, k.Text = ' ', " "
	default:
		k.Code = []rune(name)[0]
		if k.Mod == 0 {
			k.Text = name
		}
	}
	return k
}

// typed types a line, as a person does.
func typed(u *ui, text string) {
	for _, r := range text {
		u.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

// collectMail passes mail to the UI until there is none left.
func collectMail(u *ui) {
	for {
		synctest.Wait()
		select {
		case <-u.c.mail.wake:
			u.Update(mailed{})
		default:
			u.Update(ticked{})
			return
		}
	}
}

// onStage runs a test with a host that has an actor and a theatre.
func onStage(t *testing.T, f func(t *testing.T, u *ui, p *paper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		kept, err := approvals.Open(filepath.Join(t.TempDir(), "approvals.json"))
		if err != nil {
			t.Fatal(err)
		}
		h := &host.Host{Model: actor{}, Condition: allow.Condition, Approvals: kept}
		defer h.Close()
		u, p := newTestUI(t, h, Options{Title: "test"})
		if err := h.Add(theatre(ctx)); err != nil {
			t.Fatal(err)
		}
		defer u.c.wg.Wait()
		defer u.c.cancel()
		f(t, u, p)
	})
}

// settle lets time pass without typing.
func settle(u *ui) {
	for range 5 {
		time.Sleep(300 * time.Millisecond)
		collectMail(u)
	}
}

func wants(t *testing.T, p *paper, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.text(), text) {
			t.Fatalf("the terminal does not show %q:\n%s", text, p.text())
		}
	}
}

func TestTalk(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "hello")
		press(u, "enter")
		settle(u)
		wants(t, p, "❯ hello", "You said: hello", "test/actor · 1 server · 1% of 100k tokens · 0.001268")
		if u.turn != nil || !u.input.empty() {
			t.Error("the turn goes on, or the input is still there")
		}
	})
}

// /compact replaces the conversation with a summary. A line says so, ctrl-O opens the summary, the last
// line shows that there is room again, and /undo undoes it.
func TestCompact(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		u.talk.Model = narrow{}
		typed(u, "hello "+strings.Repeat("long ", 100))
		press(u, "enter")
		settle(u)
		wants(t, p, "test/actor · 1 server · 61% of 2k tokens")
		typed(u, "/compact the names")
		press(u, "enter")
		settle(u)
		wants(t, p, "• summarised, about 1.2k tokens to ", "; ctrl-O opens it, /undo undoes it  #1")
		if strings.Contains(p.text(), "matters most: the names") {
			t.Errorf("the summary is shown as an answer:\n%s", p.text())
		}
		press(u, "ctrl+o")
		wants(t, p, "matters most: the names")
		press(u, "esc")
		if line := p.frame.lines[len(p.frame.lines)-1]; strings.Contains(line, "61%") || !strings.Contains(line, "% of 2k") {
			t.Errorf("the last line is %q", line)
		}
		typed(u, "/undo")
		press(u, "enter")
		settle(u)
		wants(t, p, "test/actor · 1 server · 61% of 2k tokens")
	})
}

// narrow is an actor with a small window.
type narrow struct{ actor }

func (narrow) Info() model.Info { return model.Info{Name: "test/actor", Window: 2000} }

// TestApproval shows the exact arguments, and keys answer only when the person is not typing.
func TestApproval(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, `call say {"text":"\u001b]0;x\u202e"}`)
		press(u, "enter")
		collectMail(u)
		typed(u, "y") // the person was just typing
		collectMail(u)
		if len(u.questions) != 1 || u.input.String() != "y" {
			t.Fatalf("a key of what was being written answered: %d questions, input %q", len(u.questions), u.input.String())
		}
		settle(u)
		wants(t, p, "May theatre/say be called?", `  "text": "\u001b]0;x\u202e"`, "read-only", "y once")
		press(u, "y")
		settle(u)
		wants(t, p, "✓ theatre/say", "␛]0;x⟨U+202E⟩")
		if strings.Contains(p.text(), "\x1b]") || strings.Contains(p.text(), "\u202e") {
			t.Error("the terminal gets what it would obey")
		}
		if u.input.String() != "y" {
			t.Errorf("the input is %q, want what was being written", u.input.String())
		}
	})
}

func TestDenialWithReason(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "call lines")
		press(u, "enter")
		settle(u)
		press(u, "r")
		typed(u, "not now")
		press(u, "enter")
		settle(u)
		wants(t, p, "⊘ theatre/lines", "denied", "not now")
	})
}

// A local file that a message mentions is attached, which the terminal says, and belongs to the message
// alone: it is not part of what was typed. Without a terminal it stays text.
func TestLocalFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("note.txt", []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "read @no")
		typed(u, "te.txt and @./gone.txt")
		press(u, "enter")
		settle(u)
		wants(t, p, "attached note.txt, 8", `"./gone.txt" does not exist`, "a secret")
		if said := u.talk.Snapshot()[0].Said(); said != "read @note.txt and @./gone.txt" {
			t.Errorf("the person is said to have typed %q", said)
		}
		u.c.o.Lines = true
		if parts, err := u.c.attached(t.Context(), "@note.txt", actor{}, nil); parts != nil || err != nil {
			t.Errorf("without a terminal %+v is attached, %v", parts, err)
		}
	})
}

// TestForm fills in a form with every kind of field (ELIC-26-003, ELIC-26-005).
func TestForm(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "call book")
		press(u, "enter")
		settle(u)
		press(u, "c")
		settle(u)
		wants(t, p, "theatre asks", "Which seats would you like?", "seats       2", "row         circle", "mail        (email)")
		press(u, "enter")
		wants(t, p, "an answer is required")
		typed(u, "Ada")
		press(u, "tab")
		typed(u, "no address")
		press(u, "tab")
		wants(t, p, "must be an email address")
		press(u, "shift+tab", "ctrl+u")
		typed(u, "ada@example.com")
		press(u, "tab", "backspace")
		typed(u, "12")
		press(u, "enter")
		wants(t, p, "must be at most 9")
		press(u, "backspace", "tab")
		wants(t, p, "In a box    ‹ (choose) ›", "left, right choose  enter next")
		press(u, "space", "tab", "right", "tab", "right", "space", "right", "space", "enter")
		wants(t, p, "send to theatre", "gallery", "nuts, wine")
		press(u, "enter")
		settle(u)
		wants(t, p, `booked {"name":"Ada","mail":"ada@example.com","seats":1,"box":true`, `"row":"gallery"`)
	})
}

func TestFormIsLeft(t *testing.T) {
	for key, want := range map[string]string{"d": "declined", "c": "dismissed"} {
		onStage(t, func(t *testing.T, u *ui, p *paper) {
			typed(u, "call book")
			press(u, "enter")
			settle(u)
			press(u, "y")
			settle(u)
			press(u, "esc", "b", "esc", key)
			settle(u)
			wants(t, p, "✗ theatre/book", want)
		})
	}
}

func TestPage(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "call pay")
		press(u, "enter")
		settle(u)
		press(u, "y")
		settle(u)
		wants(t, p, "https://pay.example.com/bill/0123456789?return=https%3A%2F%2Ftheatre.example", "The page is at pay.example.com.")
		press(u, "w")
		if !strings.HasPrefix(p.out, "\x1b]52;c;") {
			collectMail(u)
		}
		if !strings.HasPrefix(p.out, "\x1b]52;c;aHR0cHM6") {
			t.Errorf("the clipboard got %q", p.out)
		}
		press(u, "o")
		settle(u)
		wants(t, p, "cannot open a browser; the page is\n  https://pay.example.com", "✓ theatre/pay")
	})
}

// TestSampling shows the request and the answer; the person may change both.
func TestSampling(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "call muse")
		press(u, "enter")
		settle(u)
		press(u, "y")
		settle(u)
		wants(t, p, "wants a model to answer this", "You are a poet.", "One line about the sea.")
		press(u, "e", "ctrl+e")
		typed(u, " Or two.")
		press(u, "ctrl+s")
		wants(t, p, "One line about the sea. Or two.")
		press(u, "y")
		settle(u)
		wants(t, p, "Send this answer to theatre?", "You said: One line about the sea. Or two.")
		press(u, "e", "ctrl+u")
		typed(u, "The sea.")
		press(u, "ctrl+s", "y")
		settle(u)
		wants(t, p, "the muse says: The sea.")
	})
}

// TestQuestionsQueue answers one question at a time.
func TestQuestionsQueue(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, `call say {"text":"a"} & lines & fail`)
		press(u, "enter")
		settle(u)
		wants(t, p, "2 more questions after this")
		press(u, "y")
		press(u, "y") // too soon: it would answer a question that was not visible yet
		collectMail(u)
		if len(u.questions) != 2 {
			t.Fatalf("%d questions are left, want 2", len(u.questions))
		}
		settle(u)
		press(u, "n")
		settle(u)
		press(u, "y")
		settle(u)
		if n := strings.Count(p.text(), "⊘ theatre/"); n != 1 {
			t.Errorf("%d calls were denied, want 1:\n%s", n, p.text())
		}
	})
}

// TestInterrupt cancels the step, and leaves when pressed again.
func TestInterrupt(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "call wait")
		press(u, "enter")
		settle(u)
		press(u, "y")
		settle(u)
		wants(t, p, "25%  halfway to somewhere")
		press(u, "ctrl+c")
		wants(t, p, "cancelling; ctrl-C again quits")
		collectMail(u)
		wants(t, p, "• cancelled", "⊘ theatre/wait")
		if got := p.frame.lines[len(p.frame.lines)-1]; got != "ctrl-C again quits" {
			t.Errorf("after the turn was cancelled the last line is %q", got)
		}
		if _, cmd := u.Update(keyOf("ctrl+c")); cmd == nil {
			t.Error("the second ctrl-C does not leave, as the last line says")
		}
		time.Sleep(3 * time.Second)
		if _, cmd := u.Update(keyOf("ctrl+c")); cmd != nil {
			t.Fatal("one ctrl-C leaves")
		}
		if _, cmd := u.Update(keyOf("ctrl+c")); cmd == nil {
			t.Fatal("two ctrl-C do not leave")
		} else if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Fatal("two ctrl-C do not leave")
		}
	})
}

// TestInterruptWithdrawsQuestions: cancelling a turn withdraws its questions.
func TestInterruptWithdrawsQuestions(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "call wait & lines")
		press(u, "enter")
		settle(u)
		press(u, "ctrl+c")
		settle(u)
		if len(u.questions) != 0 || u.turn != nil {
			t.Errorf("%d questions are left", len(u.questions))
		}
	})
}

// TestQueuedMessage sends the message when the turn ends.
func TestQueuedMessage(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "call lines")
		press(u, "enter")
		settle(u)
		press(u, "y")
		typed(u, "next")
		press(u, "enter")
		settle(u)
		wants(t, p, "You said: next")
	})
}

func TestStream(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "stream")
		press(u, "enter")
		settle(u)
		got := strings.Join(p.above, "\n")
		for _, line := range strings.Split(got, "\n") {
			if n := screen.Columns(line); n > 80 {
				t.Errorf("a line has %d columns: %q", n, line)
			}
		}
		whole := strings.TrimSpace(screen.Markdown(strings.ReplaceAll(tour, "\t", "    "), 80, false))
		if !strings.Contains(got, whole) {
			t.Errorf("what came piece by piece is\n%s\nwant\n%s", got, whole)
		}
	})
}

func TestThoughts(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "think")
		press(u, "enter")
		settle(u)
		wants(t, p, "✻ thought for", "I have thought.")
		if strings.Contains(p.text(), "Then that.") {
			t.Error("thoughts are not folded")
		}
		press(u, "ctrl+o")
		wants(t, p, "Then that.", "q back ·")
		if !p.frame.alt {
			t.Error("the viewer is no page of its own")
		}
		press(u, "q")
		press(u, "ctrl+t")
		typed(u, "think")
		press(u, "enter")
		settle(u)
		wants(t, p, "  Then that.")
	})
}

// TestPanic restores the terminal before the program ends.
func TestPanic(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		u.c.start(func(context.Context) { panic("broken") })
		synctest.Wait()
		<-u.c.mail.wake
		_, cmd := u.Update(mailed{})
		found := false
		for _, c := range batch(cmd) {
			if c == nil {
				continue
			}
			done := make(chan tea.Msg, 1)
			go func() { done <- c() }()
			synctest.Wait()
			select {
			case msg := <-done:
				_, quit := msg.(tea.QuitMsg)
				found = found || quit
			default:
			}
		}
		if !found || !strings.HasPrefix(u.panicked, "broken\n") || !strings.Contains(u.panicked, "ui_test.go") {
			t.Errorf("a panic beside the UI does not end it: %v", u.panicked)
		}
	})
}

func batch(cmd tea.Cmd) []tea.Cmd {
	if list, ok := cmd().(tea.BatchMsg); ok {
		return list
	}
	return []tea.Cmd{cmd}
}

// TestTinyTerminal shows something at any size.
func TestTinyTerminal(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		typed(u, "call book & lines & wait")
		press(u, "enter")
		settle(u)
		for _, size := range [][2]int{{20, 5}, {1, 1}, {200, 60}, {5, 2}, {80, 3}} {
			u.size = func() (int, int, error) { return size[0], size[1], nil }
			for range 3 {
				u.Update(ticked{})
				if n := len(p.frame.lines); n > max(size[1], 1)+1 {
					t.Errorf("%v: the frame has %d lines", size, n)
				}
				for _, l := range p.frame.lines {
					if n := screen.Columns(l); n > max(size[0], 2) {
						t.Errorf("%v: a line has %d columns: %q", size, n, l)
					}
				}
				if p.frame.y >= len(p.frame.lines) || p.frame.y < 0 {
					t.Errorf("%v: the cursor is in line %d of %d", size, p.frame.y, len(p.frame.lines))
				}
				settle(u)
			}
			press(u, "y")
			settle(u)
			press(u, "ctrl+o")
			press(u, "q")
		}
	})
}

func TestNoModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h := &host.Host{}
		defer h.Close()
		u, p := newTestUI(t, h, Options{Title: "test", NoModel: "No model is configured.\nSet OPENAI_API_KEY."})
		if err := h.Add(theatre(ctx)); err != nil {
			t.Fatal(err)
		}
		defer u.c.wg.Wait()
		defer u.c.cancel()
		settle(u)
		wants(t, p, "Set OPENAI_API_KEY.", "No model: /call")
		for line, want := range map[string]string{
			"hello":                                  "• No model is configured.",
			`/call theatre/say '{"text":"by hand"}'`: "by hand",
			"/call theatre/none":                     `has no tool "none"`,
			"/read theatre:play://programme":         "Hamlet",
			"/read play://programme":                 "Hamlet",
			"/tools":                                 "Books seats.",
			"/servers":                               "ready",
			"/servers retry theatre":                 "retrying theatre",
			"/servers retry thaetre":                 "no server thaetre",
			"/resources":                             "theatre:play://programme",
			"/prompts":                               "no available server has prompts",
			"/model":                                 "model: none",
			"/cost":                                  "0 tokens in",
			"/undo":                                  "nothing to undo",
			"/nonsense":                              "unknown command /nonsense",
			"/help":                                  "/resume [ID|WORDS]",
		} {
			u.input.set(line)
			press(u, "enter")
			settle(u)
			wants(t, p, want)
			u.input.set("")
		}
	})
}

// TestAnswersOfPerson: refusals are errors.
func TestAnswersOfPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host.Host{}
		u, _ := newTestUI(t, h, Options{})
		sampling := &host.Sampling{Server: "s", Request: &mcp.SampleRequest{MaxTokens: 1}}
		done := make(chan error, 1)
		go func() {
			_, err := h.Person.ReviewRequest(t.Context(), sampling)
			done <- err
		}()
		settle(u)
		press(u, "n")
		if err := <-done; !errors.Is(err, mcp.ErrDeclined) {
			t.Errorf("ReviewRequest = %v, want ErrDeclined", err)
		}
		go func() {
			_, err := h.Person.Approve(t.Context(), &host.Approval{Server: "s", Tool: &mcp.Tool{Name: "t"}})
			done <- err
		}()
		settle(u)
		u.c.cancel() // the person leaves
		if err := <-done; !errors.Is(err, errLeft) {
			t.Errorf("Approve = %v, want errLeft", err)
		}
	})
}

var _ model.Model = actor{}

// TestSuspendWhereThereIsNone: where suspending is not possible, the chat goes on.
func TestSuspendWhereThereIsNone(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		u.suspend = nil
		if _, cmd := u.Update(keyOf("ctrl+z")); cmd != nil {
			t.Errorf("ctrl-Z stops the program: %T", cmd())
		}
	})
}
