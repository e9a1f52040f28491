package page

import (
	"bufio"
	"fmt"
	"io"
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
	browser.End()
	if path, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// serving runs a command until it prints an address of this machine, which it returns. The command ends with the test.
func serving(t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+dir, "USERPROFILE="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_STATE_HOME="+dir)
	if _, err := cmd.StdinPipe(); err != nil { // held open: some servers end with it
		t.Fatal(err)
	}
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found, ended := make(chan string, 1), make(chan struct{})
	go func() { // ends with the command
		defer close(ended)
		defer close(found)
		address := regexp.MustCompile(`http://\S+`)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			t.Logf("%s: %s", filepath.Base(command[0]), lines.Text())
			if at := address.FindString(lines.Text()); at != "" {
				select {
				case found <- at:
				default: // an address was found before
				}
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		w.Close()
		<-ended
	})
	select {
	case at := <-found:
		if at != "" {
			return at
		}
	case <-time.After(time.Minute):
	}
	t.Fatalf("%q printed no address", command)
	return ""
}

// link finds the link to the page in what the program prints.
var link = regexp.MustCompile(`http://127\.0\.0\.1:\d+/#in=[\w-]+`)

// opened runs the program with arguments until it prints a link to its page, and opens that in a browser. Both end
// with the test.
func opened(t testing.TB, args ...string) (p *browser.Person, origin string) {
	t.Helper()
	p = browser.New(t)
	at := started(t, args...)
	origin, _, _ = strings.Cut(at, "/#")
	p.GoTo(at)
	p.Until(`!!document.querySelector("[data-ready]")`)
	return p, origin
}

// started runs the program with arguments until it prints a link to its page, which it returns. The program ends with
// the test.
func started(t testing.TB, args ...string) string {
	t.Helper()
	at, end := running(t, args...)
	t.Cleanup(end)
	return at
}

// running runs the program with arguments until it prints a link to its page. The function end ends the program.
func running(t testing.TB, args ...string) (at string, end func()) {
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
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt) // Windows has none, and the process is killed
		kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
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
		_ = lines.Err() // Wait closes the output; a link that is missing fails the test below
	}()
	select {
	case at = <-found:
	case <-time.After(time.Minute):
	}
	if args[0] == "up" { // it prints no link
		page := exec.Command(path, "page", "--print")
		page.Env = cmd.Env
		said, err := page.CombinedOutput()
		if err != nil {
			end()
			t.Fatalf("patchbay page: %v\n%s", err, said)
		}
		at = link.FindString(string(said))
	}
	if at == "" {
		end()
		t.Fatalf("%q printed no link", args)
	}
	return at, end
}
