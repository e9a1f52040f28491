package interop

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A target is where a client finds its server, and the revision to speak.
type target struct {
	wire     wire
	revision string
	command  []string // on stdio
	url      string   // on http
	skip     []string // steps the client is known to lack
}

// A peer is one implementation, as the client, the server or both.
type peer struct {
	name string

	// ask runs the implementation's client against a target.
	ask func(ctx context.Context, to target) (report, error)

	// serve is the command of the implementation's server on a wire. On http it
	// prints its address first.
	serve func(w wire) []string

	// as lists what the client can be told to speak; serves what the server
	// speaks.
	as, serves []string

	node bool // needs Node
}

// goServer is the command of a Go peer: this very test binary.
func goServer(name string) func(wire) []string {
	return func(w wire) []string {
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		return []string{self, "serve", name, string(w)}
	}
}

// startServer starts a command that prints an address on its first line, and
// returns the address. The process, with all it started, ends with the test.
func startServer(t *testing.T, command []string, env ...string) (address string) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = logWriter(t, "server")
	if _, err := cmd.StdinPipe(); err != nil { // held open: its end ends the server
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	startGroup(t, cmd)
	lines := make(chan string, 1)
	go func() {
		sc := bufio.NewScanner(stdout)
		for sc.Scan() {
			if s := sc.Text(); strings.Contains(s, "http://") {
				lines <- s
				break
			}
		}
		close(lines)
		_, _ = io.Copy(io.Discard, stdout) // ends with the process
	}()
	select {
	case line, ok := <-lines:
		if !ok {
			t.Fatalf("%q printed no address", command)
		}
		return strings.Fields(line[strings.Index(line, "http://"):])[0]
	case <-time.After(20 * time.Second):
		t.Fatalf("%q printed no address within 20 s", command)
	}
	return ""
}

// startGroup starts cmd in a process group of its own and ends the group with
// the test.
func startGroup(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %q: %v", cmd.Args, err)
	}
	t.Cleanup(func() {
		endGroup(cmd)
		_ = cmd.Wait() // it was killed
	})
}

// run runs a command to its end in a process group of its own and returns what
// it printed. A command that has not ended when ctx does is killed, with all
// it started.
func run(ctx context.Context, command []string, env ...string) (stdout, stderr string, err error) {
	cmd := inGroup(ctx, command)
	cmd.Env = append(os.Environ(), env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	endGroup(cmd)
	return out.String(), errs.String(), err
}

// inGroup is a command in a process group of its own, all of which ends with
// ctx.
func inGroup(ctx context.Context, command []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	ownGroup(cmd)
	cmd.Cancel = func() error { endGroup(cmd); return nil }
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// logWriter passes lines on to the test's log.
func logWriter(t *testing.T, name string) io.Writer {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		sc := bufio.NewScanner(r)
		for sc.Scan() {
			t.Logf("%s: %s", name, sc.Text())
		}
		_, _ = io.Copy(io.Discard, r) // a line too long to scan
	}()
	t.Cleanup(func() {
		w.Close()
		<-done
	})
	return w
}
