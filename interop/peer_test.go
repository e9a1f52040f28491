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

// A target is the server of a client, and the revision to speak.
type target struct {
	wire     wire
	revision string
	command  []string // on stdio
	url      string   // on http
	skip     []string // known gaps of the client
	prefix   string   // of the names of tools and prompts, behind a gateway
}

// A peer is one implementation, as the client, the server or both.
type peer struct {
	name string

	// ask runs the implementation's client against a target.
	ask func(ctx context.Context, to target) (report, error)

	// serve is the command of the implementation's server on a wire. On http it
	// prints its address first.
	serve func(w wire) []string

	// as lists the revisions that the client can be set to speak, serves those of the
	// server.
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

// startServer starts a server that prints its address, and returns the first
// address that it prints. Its output goes to the test's log. The process and its
// children end with the test.
func startServer(t *testing.T, command []string, env ...string) (address string) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	ownGroup(cmd)
	cmd.Env = append(os.Environ(), env...)
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if _, err := cmd.StdinPipe(); err != nil { // held open: some servers end with it
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %q: %v", command, err)
	}
	go func() {
		_ = cmd.Wait() // the test judges by its output
		w.Close()
	}()
	found := make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(found)
		for lines := bufio.NewReader(r); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			t.Log("server: ", strings.TrimSuffix(line, "\n"))
			if _, rest, ok := strings.Cut(line, "http://"); ok {
				select {
				case found <- "http://" + strings.Fields(rest)[0]:
				default: // an address was found before
				}
			}
		}
	}()
	t.Cleanup(func() {
		endGroup(cmd)
		<-ended
	})
	select {
	case address, ok := <-found:
		if !ok {
			t.Fatalf("%q ended and printed no address", command)
		}
		return address
	case <-time.After(20 * time.Second):
		t.Fatalf("%q printed no address within 20 s", command)
	}
	return ""
}

// run runs a command to its end in a process group of its own and returns its
// output. When ctx ends, it kills the command and its children.
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
