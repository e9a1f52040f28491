package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// dialogueLimit bounds the wait for a program's output, and for its end.
const dialogueLimit = 2 * time.Minute

// A dialogue is a conversation with a running program. The program and all its children
// end with the test.
type dialogue struct {
	t     *testing.T
	stdin io.WriteCloser
	ended chan struct{}
	err   error // after ended

	mu    sync.Mutex
	said  strings.Builder // on standard output and standard error; guarded by mu
	heard chan struct{}   // closed with the next line; guarded by mu
}

// begin starts a program for a dialogue.
func begin(t *testing.T, command []string, env ...string) *dialogue {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), dialogueLimit)
	cmd := inGroup(ctx, command)
	cmd.Env = append(os.Environ(), env...)
	d := &dialogue{t: t, ended: make(chan struct{}), heard: make(chan struct{})}
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	var err error
	if d.stdin, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatalf("start %q: %v", command, err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewReader(r); ; {
			line, err := lines.ReadString('\n')
			d.mu.Lock()
			d.said.WriteString(line)
			close(d.heard)
			d.heard = make(chan struct{})
			d.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		d.err = cmd.Wait()
		w.Close()
		<-read
		endGroup(cmd)
		close(d.ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-d.ended
	})
	return d
}

// all is the output so far.
func (d *dialogue) all() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.said.String()
}

// hears waits for a text that matches and returns it, or its first group if it has one.
func (d *dialogue) hears(pattern string) string {
	d.t.Helper()
	want := regexp.MustCompile(pattern)
	for {
		d.mu.Lock()
		said, more := d.said.String(), d.heard
		d.mu.Unlock()
		if found := want.FindStringSubmatch(said); found != nil {
			return found[len(found)-1]
		}
		select {
		case <-more:
		case <-d.ended:
			if !want.MatchString(d.all()) {
				d.t.Fatalf("the program ended (%v) and did not say %q, but:\n%s", d.err, pattern, d.all())
			}
		}
	}
}

// says writes a line to the program.
func (d *dialogue) says(line string) {
	d.t.Helper()
	if _, err := fmt.Fprintln(d.stdin, line); err != nil {
		d.t.Fatal(err)
	}
}

// ends waits for the end of the program, with an exit code, and returns its output.
func (d *dialogue) ends(code int) string {
	d.t.Helper()
	<-d.ended
	if got := exitCode(d.err); got != code {
		d.t.Fatalf("the program ended with %d (%v), want %d; it said:\n%s", got, d.err, code, d.all())
	}
	return d.all()
}

// exitCode is the exit code for the error of a program; -1: it was killed, or not started.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}
