package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/tmux"
	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// atScreen runs the program on a terminal of 80 columns and 24 rows.
func atScreen(t *testing.T, args ...string) *tmux.Terminal {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return tmux.Start(t, 80, 24, []string{testRun + "=patchbay"}, append([]string{self}, args...)...)
}

const ready = `❯ Type a message`

// TestChatAtTerminal plans a trip with a model: an approval, a form, a mentioned resource.
func TestChatAtTerminal(t *testing.T) {
	alone(t)
	scripted(t, modeltest.MustParse(`
turns:
  - when: {user: "three people"}
    answer:
      - thinking: They want a trip.
      - text: I book it.
      - call: {name: shop_book-trip, arguments: {customer: cus-1001, destination: lofoten, date: "2020-02-01", people: 3}}
  - when: {results: {shop_book-trip: "name another date"}}
    answer: [text: "Then **not**."]
`))
	x := atScreen(t, "chat", "-m", "anthropic/scripted", "-s", "shop")
	x.Wait(ready)
	x.Type("a trip for three people")
	x.Press("Enter")
	x.Wait(`May shop/book-trip be called\?[\s\S]*"people": 3[\s\S]*y once`)
	x.Press("y")
	x.Wait(`shop asks[\s\S]*enter next`)
	x.Type("someday")
	x.Press("Enter")
	x.Wait(`must be a date`)
	x.Press("Escape")
	x.Wait(`d decline`)
	x.Press("d")
	x.Wait(`shop/book-trip[\s\S]*Then not\.\n\n` + ready)
	x.Press("C-c", "C-c")
	x.Wait(`(?m)^exit 0$`)
}

// --resume without an ID shows the earlier conversations to choose from. Without a terminal it is an error.
func TestChatChoosesConversation(t *testing.T) {
	alone(t)
	scripted(t, modeltest.MustParse(`
turns:
  - when: {user: "hello"}
    answer: [text: "One."]
`))
	typed(t, "hello stove\n", "chat", "-m", "openai/scripted", "-s", "shop")
	x := atScreen(t, "chat", "-m", "openai/scripted", "-s", "shop", "--resume")
	x.Wait(`resume: [\s\S]*› \w{10}  \d{4}-[^\n]* hello stove\n`)
	x.Press("Enter")
	x.Wait(`continuing \w{10}, 2 messages[\s\S]*One\.[\s\S]*` + ready)
	x.Press("C-c", "C-c")
	x.Wait(`(?m)^exit 0$`)
	typedRun(t, "", exitUsage, "chat", "-m", "openai/scripted", "-s", "shop", "--resume", "-q")
}

// TestChatIsToldAnswers: --on-elicit answers elicitation requests, and approvals are still asked
// for.
func TestChatIsToldAnswers(t *testing.T) {
	alone(t)
	scripted(t, modeltest.MustParse(`
turns:
  - when: {user: "three people"}
    answer:
      - call: {name: shop_book-trip, arguments: {customer: cus-1001, destination: lofoten, date: "2020-02-01", people: 3}}
  - when: {results: {shop_book-trip: "name another date"}}
    answer: [text: "Then **not**."]
`))
	x := atScreen(t, "chat", "-m", "anthropic/scripted", "-s", "shop", "--on-elicit", "decline")
	x.Wait(ready)
	x.Type("a trip for three people")
	x.Press("Enter")
	x.Wait(`y once`)
	x.Press("y")
	x.Wait(`Then not\.\n\n` + ready)
}

// TestChatLeavesNothing: the servers end with the chat, however it ends, also during a call.
func TestChatLeavesNothing(t *testing.T) {
	for _, how := range []string{"ctrl-C", "hang-up"} {
		t.Run(how, func(t *testing.T) {
			dir := alone(t)
			called := filepath.Join(dir, "called")
			scripted(t, &modeltest.Script{Turns: []modeltest.Turn{{Answer: []modeltest.Piece{
				{Call: &modeltest.Call{Name: "env_hang", Arguments: map[string]any{"ready": called}}},
			}}}})
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			x := atScreen(t, "chat", "-m", "openai/scripted", "--allow", "*", "--", "env", testRun+"=stub", self, "deaf")
			x.Wait(ready)
			x.Type("wait")
			x.Press("Enter")
			x.Wait(`calling env/hang`)
			until(t, "the tool is called", func() bool { _, err := os.Stat(called); return err == nil })
			shell, err := strconv.Atoi(x.Pid())
			if err != nil {
				t.Fatal(err)
			}
			left := descendantsOf(shell)
			if len(left) < 3 {
				t.Fatalf("the terminal has the processes %v, want the program, the guard and the server", left)
			}
			if how == "ctrl-C" {
				x.Press("C-c", "C-c")
				x.Wait(`(?m)^exit 0$`)
				x.Type("echo")
				x.Wait(`(?m)^echo`) // the terminal echoes again
				left = left[1:]
			} else {
				x.Hang()
			}
			wantGone(t, left)
		})
	}
}

// TestChatOnDumbTerminal reads and prints lines, and asks line by line.
func TestChatOnDumbTerminal(t *testing.T) {
	alone(t)
	t.Setenv("TERM", "dumb")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := tmux.Start(t, 80, 24, []string{testRun + "=patchbay", "TERM=dumb"}, self, "chat", "-s", "shop")
	x.Wait(`(?m)^>`)
	x.Type("/call shop/product product=1")
	x.Press("Enter")
	screen := x.Wait(`#1`)
	if strings.Contains(x.Painted(), "\x1b[3") {
		t.Errorf("a dumb terminal is given colours: %q", screen)
	}
}
