package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/tmux"
)

// top shows calls as they happen, fits the terminal, and leaves it as it was. With --once, and
// without a terminal, it prints the table.
func TestTop(t *testing.T) {
	runtimeFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	once := func(args ...string) (out string, code int) {
		var text strings.Builder
		code = run(t.Context(), append([]string{"top"}, args...), strings.NewReader(""), &text, io.Discard)
		return text.String(), code
	}
	if _, code := once("--once"); code != exitUnreachable {
		t.Errorf("without a gateway: exit code %d, want %d", code, exitUnreachable)
	}
	if _, code := once("--json"); code != exitUsage {
		t.Errorf("--json: exit code %d, want %d", code, exitUsage)
	}
	x := tmux.Start(t, 120, 20, []string{testRun + "=patchbay"}, "sh", "-c", "echo before; "+self+" top; echo after")
	x.Wait(`no patchbay up is running here; waiting for one`)
	r := startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}})
	x.Wait(`all +ready +0 +0`)
	callTwice(t, r.url, "all_echo")
	screen := x.Wait(`all +ready +2 +1 .*1 protocol\n· echo +1 +0`)
	if !strings.Contains(screen, "q ends it") || strings.Contains(screen, "before") {
		t.Errorf("the screen is\n%s", screen)
	}
	x.Resize(60, 5)
	x.Wait(`(?s)^patchbay .*more lines\n\nq ends it\n$`)
	x.Press("q")
	x.Wait(`(?s)^before\nafter\nexit 0`)
	for _, flags := range [][]string{{"--once"}, {}, {"-s", r.url}} {
		if out, code := once(flags...); code != exitOK || !regexp.MustCompile(`all +ready +2 +1`).MatchString(out) || strings.Contains(out, "\x1b") {
			t.Errorf("top %q: exit code %d\n%s", flags, code, out)
		}
	}
}
