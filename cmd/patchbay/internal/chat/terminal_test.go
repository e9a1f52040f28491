package chat

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/tmux"
)

var update = flag.Bool("update", false, "write what the screens show into testdata/screens")

// at starts a chat with the actor and the theatre on a terminal.
func at(t *testing.T, columns, rows int, env ...string) *tmux.Terminal {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env = append([]string{stage + "=talk", "PATCHBAY_CHAT_HISTORY=" + filepath.Join(t.TempDir(), "history"), "NO_COLOR="}, env...)
	x := tmux.Start(t, columns, rows, env, self)
	x.Wait(prompted)
	return x
}

// prompted matches the screen when the server is connected and a person can type.
const prompted = `(?m)^❯ .*\n.* 1 server`

var (
	times    = regexp.MustCompile(`\d+(\.\d)? (s|min)\b`)
	busy     = regexp.MustCompile(`(?m)^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] .* · test/actor.*$`) // has room for more or less over time
	spinning = regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`)
)

// golden compares a screen, without times, with a file.
func golden(t *testing.T, name, screen string) {
	t.Helper()
	screen = busy.ReplaceAllString(screen, "(being done)")
	screen = spinning.ReplaceAllString(times.ReplaceAllString(screen, "N s"), "⠿")
	var lines []string
	for line := range strings.Lines(screen) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	screen = strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", "screens", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(screen), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), screen); diff != "" {
		t.Errorf("screen %s (-want +got); -update writes it:\n%s", name, diff)
	}
}

const armed = `y once` // keys answer the question

// done matches the screen after a number of answers, when nothing is in progress.
func done(answers int64) string {
	return `(?m)^❯ Type a message.*\n^test/actor · 1 server · ` + regexp.QuoteMeta(fmt.Sprintf("1%% of 100k tokens · %.4g", float64(answers)*(1200+2*34)/1e6))
}

// TestScreens plays a conversation and compares its screens.
func TestScreens(t *testing.T) {
	for _, size := range []struct {
		name          string
		columns, rows int
		env           []string
	}{{"80x24", 80, 24, nil}, {"200x60", 200, 60, nil}, {"plain-80x24", 80, 24, []string{"NO_COLOR=1"}}} {
		t.Run(size.name, func(t *testing.T) {
			x := at(t, size.columns, size.rows, size.env...)
			golden(t, size.name+"-empty", x.Screen())
			x.Type("stream")
			x.Press("Enter")
			x.Wait(done(1))
			golden(t, size.name+"-markdown", x.Screen())
			x.Type(`call say {"text":"hi \u001b[31m you 日本語"}`)
			x.Press("Enter")
			x.Wait(armed)
			golden(t, size.name+"-approval", x.Screen())
			x.Press("m")
			golden(t, size.name+"-classes", x.Wait(`s all \d+ tools`))
			x.Press("r")
			golden(t, size.name+"-read-only", x.Wait(`c in this conversation  a always`))
			x.Press("Escape")
			x.Wait(`s all \d+ tools`)
			x.Press("i")
			golden(t, size.name+"-condition", x.Wait(`enter checks it`))
			x.Press("Escape")
			x.Wait(`s all \d+ tools`)
			x.Press("Escape")
			x.Wait(armed)
			x.Press("c")
			x.Wait(done(3))
			x.Type("call lines")
			x.Press("Enter")
			x.Wait(armed)
			x.Press("y")
			x.Wait(done(5))
			golden(t, size.name+"-result", x.Screen())
			x.Press("C-o")
			x.Wait(`calls and thoughts`)
			golden(t, size.name+"-viewer", x.Screen())
			x.Press("q")
			x.Wait(done(5))
			x.Press("C-r")
			x.Wait(`› call lines\n.*\n  stream`)
			x.Type("call")
			x.Wait(`search: call\n› call lines`)
			golden(t, size.name+"-search", x.Screen())
			x.Press("Escape")
			x.Wait(done(5))
			x.Type("call book")
			x.Press("Enter")
			x.Wait(armed)
			x.Press("y")
			x.Wait(`enter next`)
			x.Press("Tab")
			x.Wait(`an answer is required`)
			golden(t, size.name+"-form", x.Screen())
			x.Press("Escape")
			x.Wait(`d decline`)
			x.Press("d")
			x.Wait(done(7))
			x.Type("call pay")
			x.Press("Enter")
			x.Wait(armed)
			x.Press("y")
			x.Wait(`o open it`)
			golden(t, size.name+"-page", x.Screen())
			x.Press("n")
			x.Wait(done(9))
			x.Type("/help")
			x.Press("Enter")
			x.Wait(`twice quits\n\n❯ Type`)
			golden(t, size.name+"-help", x.Screen())
			painted := x.Painted()
			if size.env != nil && strings.Contains(painted, "\x1b[3") {
				t.Errorf("there is colour in spite of NO_COLOR: %q", painted)
			}
			// Only colours of the terminal's palette, and no background, so that dark and light
			// themes are readable.
			for _, m := range regexp.MustCompile(`\x1b\[([0-9;]*)m`).FindAllStringSubmatch(painted, -1) {
				for _, n := range strings.Split(m[1], ";") {
					if !regexp.MustCompile(`^(|0|1|2|3|4|9|3[1-69]|49)$`).MatchString(n) {
						t.Errorf("the screen has the style %q", m[0])
					}
				}
			}
		})
	}
}

// TestResizing changes the size during an answer, a form and the viewer, and wants no remains of an
// old frame.
func TestResizing(t *testing.T) {
	x := at(t, 80, 24)
	x.Type("hang")
	x.Press("Enter")
	x.Wait(`answering`)
	for _, size := range [][2]int{{50, 24}, {120, 30}, {20, 5}, {80, 24}, {41, 10}, {200, 60}, {80, 24}} {
		x.Resize(size[0], size[1])
		x.Wait(`⠋|⠙|⠹|⠸|⠼|⠴|⠦|⠧|⠇|⠏`)
	}
	x.Press("C-c")
	x.Wait(`• cancelled\n\n❯ Type`)
	x.Type("call book")
	x.Press("Enter")
	x.Wait(armed)
	x.Press("y")
	x.Wait(`enter next`)
	x.Resize(20, 5)
	x.Wait(`theatre`)
	x.Resize(80, 24)
	x.Wait(`enter next`)
	x.Press("Escape")
	x.Wait(`d decline`)
	x.Press("c")
	x.Wait(done(2))
	if all := x.All(); strings.Count(all, "❯ hang") != 1 || strings.Count(all, "I begin, and") != 1 {
		t.Errorf("something of an old frame is left:\n%s", all)
	}
}

// TestScrollback finds a whole long conversation in the terminal's scrollback.
func TestScrollback(t *testing.T) {
	x := at(t, 80, 24)
	for i := range int64(3) {
		x.Type("stream")
		x.Press("Enter")
		x.Wait(done(i + 1))
	}
	all := x.All()
	for text, want := range map[string]int{"A tour": 3, "The end.": 3, "❯ stream": 3, "❯ Type a message": 1} {
		if n := strings.Count(all, text); n != want {
			t.Errorf("%q is there %d times, want %d:\n%s", text, n, want, all)
		}
	}
}

// TestFullFrames fills the screen with a dialog, and wants none of it in the scrollback after the answer and at the end.
func TestFullFrames(t *testing.T) {
	x := at(t, 80, 24)
	x.Type("call say {\"text\":\"" + strings.Repeat("many words ", 300) + "\"}")
	x.Press("Enter")
	x.Wait(`(?s)\A\? theatre/say.*more lines: arrows.*` + armed)
	x.Press("n")
	x.Wait(done(2))
	if all := x.All(); strings.Contains(all, "┃") || strings.Count(all, "⊘ theatre/say") != 1 || strings.Contains(all, "waiting for you") {
		t.Errorf("something of the dialog is left:\n%s", all)
	}
	x.Press("Up")
	x.Press("Enter")
	x.Wait(`(?s)\A\? theatre/say.*` + armed)
	x.Press("C-c", "C-c")
	x.Wait(`(?m)^exit 0$`)
	if all := x.All(); strings.Contains(all, "┃") {
		t.Errorf("something of the dialog is left at the end:\n%s", all)
	}
}

// TestLeaving restores the terminal.
func TestLeaving(t *testing.T) {
	x := at(t, 80, 24)
	x.Type("call wait")
	x.Press("Enter")
	x.Wait(armed)
	x.Press("y")
	x.Wait(`halfway to somewhere`)
	x.Press("C-c", "C-c")
	screen := x.Wait(`(?m)^exit 0$`)
	if !strings.Contains(screen, "❯ call wait") {
		t.Errorf("what was said is gone:\n%s", screen)
	}
	x.Type("echo")
	x.Wait(`(?m)^echo`) // the terminal echoes again
}

// TestSuspending gives the terminal to the shell, and shows the chat again after its output.
func TestSuspending(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := tmux.Start(t, 80, 24, []string{stage + "=talk"}, "sh", "-mc", `"$0"; echo the shell; read line; fg`, self)
	x.Wait(prompted)
	x.Type("something to keep")
	x.Press("C-z")
	if screen := x.Wait(`(?m)^the shell`); strings.Contains(screen, "❯") {
		t.Errorf("the frame is left behind:\n%s", screen)
	}
	x.Press("Enter")
	x.Wait(`the shell[\s\S]*❯ something to keep`)
	x.Press("Enter")
	x.Wait(done(1))
	x.Press("C-d")
	x.Wait(`(?m)^exit 0$`)
}

// TestHistoryIsKept finds the input of an earlier run.
func TestHistoryIsKept(t *testing.T) {
	kept := "PATCHBAY_CHAT_HISTORY=" + filepath.Join(t.TempDir(), "history")
	x := at(t, 80, 24, kept)
	x.Type("something to remember")
	x.Press("Enter")
	x.Wait(done(1))
	x.Press("C-d")
	x.Wait(`(?m)^exit 0$`)
	x = at(t, 80, 24, kept)
	x.Press("Up")
	x.Wait(`❯ something to remember`)
}
