package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/tmux"
)

// TestUpAsksWhileItFollows: an open question about a file stops nothing. The file is
// followed meanwhile: a question about what the file no longer says is withdrawn, and a yes is one to
// what is on the screen (trap 24).
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
	x := tmux.Start(t, 100, 60, []string{testRun + "=patchbay"}, "sh", "-c", "cd "+dir+" && exec "+self+" up --http 127.0.0.1:0")
	x.Wait(`is new here\. It starts, as you:\n  one: conjugate\n.*\[y/N\]`)
	x.Type("y")
	x.Press("Enter")
	x.Wait(`ctrl-C ends it`)
	servers("one", "two")
	x.Wait(`has changed\. It starts, as you:\n  one: conjugate\n  two: conjugate\n.*\[y/N\]`)
	servers("one", "three")
	x.Wait(`has changed once more\. It starts, as you:\n  one: conjugate\n  three: conjugate\n.*\[y/N\]`)
	time.Sleep(readTime) // as a person does
	x.Type("y")
	x.Press("Enter")
	x.Wait(`\+ three`)
	x.Wait(`three: ready, 1 tools`)
	servers("one", "four")
	x.Wait(`four: conjugate\n  one: conjugate\n.*\[y/N\]`)
	servers("one", "three") // as it was: there is nothing to ask
	x.Wait(`the question is withdrawn`)
	servers("one", "three", "five")
	x.Wait(`five: conjugate\n  one: conjugate\n  three: conjugate\n.*\[y/N\]`)
	x.Type("n")
	x.Press("Enter")
	x.Wait(`everything stays as it is`)
	screen := x.Wait(`config trust`)
	if strings.Contains(screen, "right again") || strings.Contains(screen, "+ four") || strings.Contains(screen, "+ five") || strings.Contains(screen, "+ two") {
		t.Errorf("the screen has what was not agreed to, or a fault that was none:\n%s", screen)
	}
}

// The table of up comes soon, also if a server says nothing: that one is starting, and a line says
// when it is ready.
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
