package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// Ctrl-C during a call ends the run and the server, also one that would not end by itself.
func TestInterruptedRunLeavesNothing(t *testing.T) {
	dir := alone(t)
	ready := filepath.Join(dir, "ready")
	scripted(t, &modeltest.Script{Turns: []modeltest.Turn{{Answer: []modeltest.Piece{
		{Call: &modeltest.Call{Name: "env_hang", Arguments: map[string]any{"ready": ready}}},
	}}}})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "run", "wait", "-m", "openai/scripted", "--allow", "*", "--", "env", testRun+"=stub", self, "deaf")
	cmd.Env = append(os.Environ(), testRun+"=patchbay")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // there is no event for another process
		if _, err := os.Stat(ready); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the tool was not called")
		}
	}
	children := descendantsOf(cmd.Process.Pid)
	if len(children) < 2 {
		t.Fatalf("the program has the descendants %v, want the guard and the server", children)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted || exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("the program ended with %v, want exit code %d", err, exitInterrupted)
	}
	wantGone(t, children)
}
