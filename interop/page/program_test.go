package page

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/interop/internal/browser"
)

// program is the patchbay binary, built once for all tests.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "patchbay-page")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "patchbay.exe") // Windows needs the suffix, and other systems ignore it
	build := exec.Command("go", "build", "-o", path, "./cmd/patchbay")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return path, fmt.Errorf("build patchbay: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// link finds the link to the page in what the program prints.
var link = regexp.MustCompile(`http://127\.0\.0\.1:\d+/#in=[\w-]+`)

// opened runs the program with arguments until it prints a link to its page, and opens that in a browser. Both end
// with the test.
func opened(t *testing.T, args ...string) (p *browser.Person, origin string) {
	t.Helper()
	p = browser.New(t)
	at := started(t, args...)
	origin, _, _ = strings.Cut(at, "/#")
	p.GoTo(at)
	p.Until(`!!document.querySelector("[data-ready]")`)
	return p, origin
}

// started runs the program with arguments until it prints a link to its page, which it returns.
func started(t *testing.T, args ...string) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+dir, "USERPROFILE="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CACHE_HOME="+dir, "XDG_RUNTIME_DIR="+dir)
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := new(strings.Builder)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // Windows has none, and the process is killed
		time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("standard error:\n%s", said)
		}
	})
	lines := bufio.NewScanner(out)
	found := make(chan string, 1)
	go func() { // ends with the program
		defer close(found)
		for lines.Scan() {
			if args[0] == "up" && strings.Contains(lines.Text(), "serves http") {
				found <- ""
			} else if at := link.FindString(lines.Text()); at != "" {
				found <- at
			}
		}
	}()
	at := ""
	select {
	case at = <-found:
	case <-time.After(time.Minute):
	}
	if args[0] == "up" { // it prints no link
		page := exec.Command(path, "page", "--print")
		page.Env = cmd.Env
		said, err := page.CombinedOutput()
		if err != nil {
			t.Fatalf("patchbay page: %v\n%s", err, said)
		}
		at = link.FindString(string(said))
	}
	if at == "" {
		t.Fatalf("%q printed no link", args)
	}
	return at
}
