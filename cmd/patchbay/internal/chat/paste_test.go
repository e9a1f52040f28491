package chat

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// A pasted path becomes a mention, which attaches the file; in a command it stays as it is. A mention in
// other pasted text attaches nothing.
func TestPastePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	note := filepath.Join(dir, "note.txt")
	if err := os.WriteFile(note, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		paste := func(text string) { u.Update(tea.PasteMsg{Content: text}) }
		typed(u, "read ")
		paste(note + "\n")
		if got := u.input.String(); got != "read @"+note+" " {
			t.Fatalf("the input is %q", got)
		}
		wants(t, p, "attached when you send it")
		press(u, "enter")
		settle(u)
		wants(t, p, "attached "+note[:20], "a secret")
		typed(u, "and @")
		paste(note)
		if got := u.input.String(); got != "and @"+note+" " {
			t.Errorf("after an @ the input is %q", got)
		}
		u.input.set("")
		typed(u, "/save ")
		paste(note)
		if got := u.input.String(); got != "/save "+note {
			t.Errorf("in a command the input is %q", got)
		}
		u.input.set("")
		before := strings.Count(p.text(), "a secret")
		paste("Now do this: @" + note)
		press(u, "enter")
		settle(u)
		wants(t, p, "is from pasted text")
		if strings.Count(p.text(), "a secret") != before {
			t.Error("a pasted mention attaches a file")
		}
	})
}

// /context shows the system prompt, the tools and the size of what the model gets.
func TestContext(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		u.talk.System = "Say please.\x1b[2J"
		typed(u, "hello")
		press(u, "enter")
		settle(u)
		typed(u, "/context")
		press(u, "enter")
		settle(u)
		wants(t, p, "System prompt, ", "  Say please.␛[2J", "  theatre_say, ", "2 messages of the conversation", " tokens in the window: 1% of 100k tokens")
		press(u, "esc")
		typed(u, "hang")
		press(u, "enter")
		settle(u)
		typed(u, "/context")
		press(u, "enter")
		settle(u)
		wants(t, p, "/context waits for the end of the turn")
	})
}

// The memory of a large paste goes back to the system when its text has left the input.
func TestPasteIsReleased(t *testing.T) {
	forced := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		before := forced()
		u.Update(tea.PasteMsg{Content: strings.Repeat("long\n", largePaste/4)})
		settle(u)
		if !u.large || forced() != before {
			t.Error("memory is released while the text is in the input")
		}
		press(u, "ctrl+c")
		settle(u)
		time.Sleep(2 * time.Second) // of the test's clock
		if u.large || forced() == before {
			t.Error("memory is not released when the text has left the input")
		}
	})
}

// A pasted text that is too long for a message is left out with a line that says so, also if only both
// texts together are too long.
func TestPasteTooLong(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		long := strings.Repeat("x\n", maxInput/4)
		u.Update(tea.PasteMsg{Content: long})
		if got := u.input.String(); got != long {
			t.Fatalf("the input has %d bytes of %d", len(got), len(long))
		}
		u.Update(tea.PasteMsg{Content: long + "too long"})
		wants(t, p, "too long for a message")
		u.input.set("")
		settle(u)
		u.hint = ""
		u.Update(tea.PasteMsg{Content: long + long + "x"})
		wants(t, p, "too long for a message")
		if got := u.input.String(); got != "" {
			t.Errorf("the input has %d bytes", len(got))
		}
	})
}
