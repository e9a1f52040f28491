package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// ctrl-C ends everything within 5 seconds, also a server that ignores it and a call that never
// ends; kill -9 leaves nothing behind.
func TestUpLeavesNothing(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"ctrl-C": syscall.SIGINT, "kill -9": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			script := fmt.Sprintf(`(trap '' TERM HUP; sleep 1000; echo) & trap '' TERM; env %s=stub %s; sleep 1000`, testRun, self)
			r := startUp(t, map[string]any{
				"stub":     stubServer(t),
				"stubborn": map[string]any{"command": "sh", "args": []string{"-c", script}},
			})
			s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ready := filepath.Join(t.TempDir(), "ready")
			called := make(chan error, 1)
			go func() {
				_, err := s.CallTool(context.WithoutCancel(t.Context()), "stub_hang", map[string]any{"ready": ready})
				called <- err
			}()
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(ready); err == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the call has not begun within 20 s")
				}
			}
			descendants := descendantsOf(r.cmd.Process.Pid)
			if len(descendants) < 5 {
				t.Fatalf("the program has the descendants %v, want two guards, two servers and a sleep at least", descendants)
			}
			start := time.Now()
			r.cmd.Process.Signal(sig)
			r.cmd.Wait()
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%s took %v, want 5 s at most", name, took)
			}
			wantGone(t, descendants)
			if err := <-called; err == nil {
				t.Error("the call in progress was answered")
			}
		})
	}
}

// A server that is removed from the configuration ends with all its processes, even if it ignores
// the end of its input and has started processes in sessions of their own.
func TestRemovedServerLeavesNothing(t *testing.T) {
	runtimeFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`trap '' TERM HUP; (setsid sleep 1000 &); env %s=stub %s; sleep 1000`, testRun, self)
	stays := map[string]any{"builtin": "conjugate"}
	r := startUp(t, map[string]any{"stays": stays, "stubborn": map[string]any{"command": "sh", "args": []string{"-c", script}}})
	descendants := descendantsOf(r.cmd.Process.Pid)
	if len(descendants) < 4 {
		t.Fatalf("the program has the descendants %v, want the guard, the shell, the server and a sleep", descendants)
	}
	writeConfig(t, r.file, map[string]any{"stays": stays})
	r.stderr.await(t, `(?m)^patchbay: - stubborn$`)
	wantGone(t, descendants)
}

// A file that was a pipe for a moment is still followed, whoever writes to the pipe (trap 24).
func TestUpFollowsAfterAPipe(t *testing.T) {
	runtimeFolder(t)
	one := map[string]any{"builtin": "conjugate"}
	r := startUp(t, map[string]any{"one": one})
	for _, open := range []bool{false, true} {
		os.Remove(r.file)
		if err := syscall.Mkfifo(r.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if open {
			w, err := os.OpenFile(r.file, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			r.stderr.await(t, `it is a pipe that was not closed within`)
		} else {
			r.stderr.await(t, `mcp.json has faults; the servers are unchanged`)
		}
		name := fmt.Sprint("open-", open)
		writeConfig(t, r.file, map[string]any{"one": one, name: one})
		r.stderr.await(t, `(?m)^patchbay: \+ `+name+`$`)
	}
}
