package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/tmux"
)

// TestUpAsksWhileItFollows: an open question about a file stops nothing. Meanwhile up follows the
// file: when its content changes, the question is withdrawn, and a yes covers the content on the
// screen (trap 24).
func TestUpAsksWhileItFollows(t *testing.T) {
	ownFolders(t)
	runtimeFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	servers := func(names ...string) {
		t.Helper()
		all := map[string]any{}
		for _, name := range names {
			all[name] = map[string]any{"builtin": "conjugate"}
		}
		writeConfig(t, file, all)
	}
	servers("one")
	x := tmux.Start(t, 160, 60, []string{testRun + "=patchbay"}, "sh", "-c", "cd "+dir+" && exec "+self+" up --http 127.0.0.1:0")
	x.Wait(`is not trusted yet\. It starts these, as you:\n  one: conjugate\n.*\[y/N\]`)
	x.Type("y")
	x.Press("Enter")
	x.Wait(`ctrl-C ends it`)
	servers("one", "two")
	x.Wait(`has changed\. It starts these, as you:\n  one: conjugate\n  two: conjugate\n.*\[y/N\]`)
	servers("one", "three")
	x.Wait(`has changed again\. It starts these, as you:\n  one: conjugate\n  three: conjugate\n.*\[y/N\]`)
	x.Type("y")
	x.Press("Enter")
	x.Wait(`\+ three`)
	x.Wait(`three: ready, 1 tool`)
	servers("one", "four")
	x.Wait(`four: conjugate\n  one: conjugate\n.*\[y/N\]`)
	servers("one", "three") // the trusted content: no question
	x.Wait(`the question is withdrawn`)
	servers("one", "three", "five")
	x.Wait(`five: conjugate\n  one: conjugate\n  three: conjugate\n.*\[y/N\]`)
	x.Type("n")
	x.Press("Enter")
	x.Wait(`the servers are unchanged`)
	screen := x.Wait(`config trust`)
	if strings.Contains(screen, "valid again") || strings.Contains(screen, "+ four") || strings.Contains(screen, "+ five") || strings.Contains(screen, "+ two") {
		t.Errorf("the screen has what was not agreed to, or a fault that was none:\n%s", screen)
	}
}

// TestTypedBeforeTheQuestion: input from before a person could read the question about a file does
// not answer it: lines in the terminal's buffer, lines that the program has read, and half a line
// (trap 24).
func TestTypedBeforeTheQuestion(t *testing.T) {
	ownFolders(t)
	runtimeFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	servers := func(names ...string) {
		t.Helper()
		all := map[string]any{}
		for _, name := range names {
			all[name] = map[string]any{"builtin": "conjugate"}
		}
		writeConfig(t, file, all)
	}
	servers("one")
	up := "cd " + dir + "; echo wait; while [ ! -e go ]; do sleep 0.05; done; " + self + " up --http 127.0.0.1:0; " + self + " up --http 127.0.0.1:0"
	x := tmux.Start(t, 160, 60, []string{testRun + "=patchbay"}, "sh", "-c", up)
	answer := func(keys ...string) {
		for _, k := range keys {
			x.Press(k)
		}
	}
	x.Wait("wait")
	answer("y", "Enter")
	x.Wait("y\n")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x.Wait(`\[y/N\]`)
	answer("n", "Enter")
	x.Wait(`is not trusted yet, so its servers`)
	x.Wait(`\[y/N\](?s:.*)\[y/N\]`)
	answer("y", "Enter")
	x.Wait(`ctrl-C ends it`)

	refuses := func(what string, keys ...string) {
		t.Helper()
		x.Wait(`\[y/N\]`)
		answer(keys...)
		if screen := x.Wait(`the servers are unchanged|\+ evil`); strings.Contains(screen, "+ evil") {
			t.Errorf("%s answered the question:\n%s", what, screen)
		}
		servers("one")
		x.Press("-R") // clears the screen
	}
	answer("y", "Enter")
	x.Wait(`(?m)^y$`)
	x.Press("-R")
	servers("one", "evil")
	refuses("a line typed before any question", "n", "Enter")

	servers("one", "two")
	x.Wait(`\[y/N\]`)
	servers("one")
	x.Wait(`the question is withdrawn`)
	answer("y", "Enter")
	x.Wait(`(?m)^y$`)
	x.Press("-R")
	servers("one", "evil", "three")
	refuses("a line typed after a question was withdrawn", "n", "Enter")

	servers("one", "four")
	x.Wait(`\[y/N\]`)
	answer("y")
	x.Wait(`\[y/N\] y`)
	x.Press("-R")
	servers("one", "evil", "four")
	refuses("half a line, typed for the question before", "Enter")
}

// The table of up comes soon even if a server is silent: that one is shown as starting, and a line
// says when it is ready.
func TestUpTableIsSoon(t *testing.T) {
	t.Setenv(testSoon, "1")
	runtimeFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	flag := filepath.Join(t.TempDir(), "go")
	script := `while [ ! -e "$0" ]; do sleep 0.05; done; exec env ` + testRun + `=stub "$1"`
	r := startUp(t, map[string]any{
		"late": map[string]any{"command": "sh", "args": []string{"-c", script, flag, self}},
		"all":  map[string]any{"builtin": "everything"},
	})
	if !regexp.MustCompile(`(?m)^late +- +- +- +starting$`).MatchString(r.banner) {
		t.Errorf("up printed\n%swant a server that is starting", r.banner)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.stderr.await(t, `(?m)^patchbay: late: ready, 5 tools$`)
}
