package launch

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// leaks is a line of standard error with secrets that only their names show, and one with a shape.
const leaks = "boom: segfault at password=hunter2 DB_PASSWORD=hunter3 Authorization: Bearer abcdefghijklmnop ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

func leaked(text string) bool {
	for _, secret := range []string{"hunter", "abcdefghijklmnop", "ghp_a1"} {
		if strings.Contains(text, secret) {
			return true
		}
	}
	return false
}

// A server that writes secrets to its standard error and ends shows none of them to others: in the error of its
// opening, in the mcp.ExitError in it, in its last lines, in its journal and in the lines of up.
func TestStandardErrorHoldsNoSecrets(t *testing.T) {
	e := &Env{Redact: trace.NewRedactor(nil)}
	var each strings.Builder
	log := e.NewLog("leak", func(line string) { fmt.Fprintln(&each, line) })
	log.journal = new(Journal)
	s := config.Server{Name: "leak", Command: os.Args[0], Env: map[string]string{"LAUNCH_TEST_SERVER": "1", "LAUNCH_TEST_SAYS": leaks + "\nlast words"}}
	_, err := e.Upstream(t.Context(), s, &mcp.Client{Name: "c"}, log)
	var exit *mcp.ExitError
	if !errors.As(err, &exit) || leaked(exit.Stderr) || !strings.Contains(exit.Stderr, "boom: segfault at password="+trace.Redacted) || exit.State != "exit status 3" {
		t.Errorf("the error of the process: %+v (%v)", exit, err)
	}
	journal := ""
	for _, line := range log.journal.Last(10) {
		journal += line.Text + "\n"
	}
	fmt.Fprint(log, "DB_PASSWORD=hunter4") // the line is not complete
	for name, text := range map[string]string{"error": err.Error(), "wrapped error": fmt.Sprintf("%v", fmt.Errorf("a: %w", err)), "last lines": log.Last(), "journal": journal, "lines": each.String()} {
		if leaked(text) || !strings.Contains(text, "boom: segfault") || !strings.Contains(text, "last words") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// A private key at the beginning of the last lines, and of a line that is not complete, is not shown.
func TestLastLinesHoldNoKey(t *testing.T) {
	l := (&Env{}).NewLog("a", nil)
	fmt.Fprint(l, "-----BEGIN PRIVATE KEY-----\n"+strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n", 12)+"MIIEvQ")
	if last := l.Last(); strings.Contains(last, "MIIE") || !strings.Contains(last, trace.Redacted) {
		t.Error(last)
	}
}

// The last lines of a server that has ended are those of its last process, and not of former ones.
func TestLastLinesAreOfOneProcess(t *testing.T) {
	f := &Servers{Gateway: new(gateway.Gateway), Env: new(Env)}
	log := f.Env.NewLog("a", nil)
	for _, says := range []string{"first words", "second words"} {
		entry := config.Server{Name: "a", Command: os.Args[0], Env: map[string]string{"LAUNCH_TEST_SERVER": "1", "LAUNCH_TEST_SAYS": says}}
		if _, err := f.openCounted(t.Context(), &server{Server: entry}, entry, log); err == nil {
			t.Fatal("a process that ends at once was opened")
		}
		if last := log.Last(); strings.Trim(strings.ReplaceAll(last, says, ""), "\n") != "" || last == "" { // it is tried more than once
			t.Errorf("the last lines are %q, want %q alone", last, says)
		}
	}
}

// Of the lines of standard output that are not messages the first is kept, cut and without secrets, until all connections
// have ended and another begins. Only the first of all is new to the person.
func TestStrayLines(t *testing.T) {
	l := (&Env{Redact: trace.NewRedactor(nil)}).NewLog("a", nil)
	l.journal = new(Journal)
	l.begins()
	for i, line := range []string{leaks + strings.Repeat("é", 10<<10), "second"} {
		if shown, known := l.stray([]byte(line)); known != (i > 0) || leaked(shown) {
			t.Errorf("line %d: %q, known = %v", i, shown, known)
		}
	}
	if l.strays != 2 || len(l.first) > 210 || leaked(l.first) || !strings.HasPrefix(l.first, "boom: segfault") {
		t.Errorf("%d lines, the first %q", l.strays, l.first)
	}
	if lines := l.journal.Last(10); len(lines) != 1 || !strings.Contains(lines[0].Text, "boom: segfault") || leaked(lines[0].Text) {
		t.Errorf("journal %+v", lines)
	}
	l.begins()
	l.ends()
	if l.strays != 2 {
		t.Error("another connection has removed the lines of an open one")
	}
	l.ends()
	l.begins()
	if l.strays != 0 || l.first != "" {
		t.Errorf("%d lines of former processes, the first %q", l.strays, l.first)
	}
	if shown, known := l.stray([]byte("third")); !known || shown != "third" || l.first != "third" {
		t.Errorf("after a restart: %q, known = %v, the first %q", shown, known, l.first)
	}
}
