// Package tmux runs commands in a terminal for tests: it starts a command, types, and reads the
// screen.
package tmux

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Terminal is a terminal in which a command runs. It is for one goroutine.
type Terminal struct {
	t      *testing.T
	socket string
}

// patience bounds the wait for a screen.
const patience = 60 * time.Second

// Start runs a command in a terminal of columns by rows, with the variables in env, as NAME=VALUE,
// added to its environment. When the command ends, the screen shows "exit" and its exit code.
// Without tmux the test is skipped, or fails if PATCHBAY_TMUX=required is set.
func Start(t *testing.T, columns, rows int, env []string, command ...string) *Terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("PATCHBAY_TMUX") == "required" {
			t.Fatal("PATCHBAY_TMUX=required, but tmux is not installed")
		}
		t.Skip("tmux is not installed: apt-get install tmux")
	}
	dir, err := os.MkdirTemp("", "tmux") // the test's folder may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	x := &Terminal{t, filepath.Join(dir, "s")}
	t.Cleanup(func() {
		x.run("kill-server") // the server may have ended
		os.RemoveAll(dir)
	})
	line := "env"
	for _, w := range append(env, command...) {
		line += " " + quoted(w)
	}
	// Messages of the shell must not look like output of the command.
	line += "; echo exit $?; exec sleep 1000"
	config := filepath.Join(dir, "tmux.conf")
	if err := os.WriteFile(config, []byte("set -g default-terminal screen-256color\nset -g history-limit 5000\nset -s escape-time 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := x.run("-f", config, "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), "exec sh -c "+quoted(line)); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	return x
}

// quoted quotes a word for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (x *Terminal) run(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (x *Terminal) must(args ...string) string {
	x.t.Helper()
	out, err := x.run(args...)
	if err != nil {
		x.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return out
}

// Type types a text literally.
func (x *Terminal) Type(text string) {
	x.t.Helper()
	x.must("send-keys", "-l", "--", text)
}

// Paste pastes a text, as terminals do: programs that want to know learn that it was pasted.
func (x *Terminal) Paste(text string) {
	x.t.Helper()
	x.must("set-buffer", "-b", "pasted", "--", text)
	x.must("paste-buffer", "-p", "-d", "-b", "pasted")
}

// Press presses keys, by their tmux names: Enter, C-c, Up.
func (x *Terminal) Press(keys ...string) {
	x.t.Helper()
	x.must(append([]string{"send-keys"}, keys...)...)
}

// Resize changes the size of the terminal.
func (x *Terminal) Resize(columns, rows int) {
	x.t.Helper()
	x.must("resize-window", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows))
}

// Screen returns the text of the terminal, without blank lines at its end.
func (x *Terminal) Screen() string {
	x.t.Helper()
	return strings.TrimRight(x.must("capture-pane", "-p"), "\n") + "\n"
}

// Painted returns the screen with its colours, as escape sequences.
func (x *Terminal) Painted() string {
	x.t.Helper()
	return x.must("capture-pane", "-p", "-e")
}

// All returns the scrollback and the screen.
func (x *Terminal) All() string {
	x.t.Helper()
	return strings.TrimRight(x.must("capture-pane", "-p", "-S", "-"), "\n") + "\n"
}

// Wait waits until the screen matches a regular expression, and returns it.
func (x *Terminal) Wait(pattern string) string {
	x.t.Helper()
	return x.wait(x.Screen, regexp.MustCompile(pattern).MatchString, pattern)
}

// WaitGone waits until the screen no longer matches a regular expression, and returns the screen.
func (x *Terminal) WaitGone(pattern string) string {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	return x.wait(x.Screen, func(s string) bool { return !re.MatchString(s) }, "anything but "+pattern)
}

func (x *Terminal) wait(read func() string, ok func(string) bool, what string) string {
	x.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		text := read()
		if ok(text) {
			return text
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("the screen is not %s:\n%s", what, text)
		}
		time.Sleep(20 * time.Millisecond) // tmux does not report changes
	}
}

// Hang closes the terminal, as closing its window does.
func (x *Terminal) Hang() {
	x.t.Helper()
	x.must("kill-server")
}

// Pid returns the process id of the shell in the terminal; the command is its child.
func (x *Terminal) Pid() string {
	x.t.Helper()
	return strings.TrimSpace(x.must("display-message", "-p", "#{pane_pid}"))
}
