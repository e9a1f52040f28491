package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gone bounds the end of all descendants of a killed program.
const gone = 3 * time.Second

// TestKilledProgramLeavesNothing kills the program with SIGKILL during a call. Everything that it
// started must end: the server, and the background processes of the server's shell.
//
// Ledger: 2026-07-28, basic/transports/stdio, Shutdown.
func TestKilledProgramLeavesNothing(t *testing.T) {
	tests := []struct{ name, script string }{
		{"the shell becomes the server", `sleep 1000 & sleep 1000 & exec "$STUB"`},
		{"the server is a grandchild", `sleep 1000 & "$STUB"; echo`},
		{"the server ends first", `sleep 1000 & sleep 1000 & "$STUB"`},
		{"a daemon", `(setsid sleep 1000 &); exec "$STUB"`},
		{"a session of its own that ignores SIGTERM", `setsid sh -c 'trap "" TERM HUP; sleep 1000; echo' & "$STUB"; echo`},
		{"a great-grandchild that ignores SIGTERM", `(trap '' TERM HUP; sleep 1000; echo) & sh -c '"$STUB"; echo'; echo`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd, descendants := startTree(t, tt.script)
			if len(descendants) < 3 {
				t.Fatalf("the program has the descendants %v, want the guard, the server and a sleep at least", descendants)
			}
			cmd.Process.Signal(syscall.SIGKILL)
			cmd.Wait()
			wantGone(t, descendants)
		})
	}
}

// TestInterruptedProgramLeavesNothing ends the program with ctrl-C during a call.
func TestInterruptedProgramLeavesNothing(t *testing.T) {
	cmd, descendants := startTree(t, `(trap '' TERM HUP; sleep 1000; echo) & (setsid sleep 1000 &); exec "$STUB"`)
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != exitInterrupted {
		t.Errorf("exit code %d, want %d", got, exitInterrupted)
	}
	wantGone(t, descendants)
}

// TestKilledGuardEndsTheServer kills the guard: its command must end, and the program must not wait
// for it.
func TestKilledGuardEndsTheServer(t *testing.T) {
	cmd, descendants := startTree(t, `exec "$STUB"`)
	syscall.Kill(descendants[0], syscall.SIGKILL)
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != exitUnreachable {
		t.Errorf("exit code %d, want %d", got, exitUnreachable)
	}
	wantGone(t, descendants)
}

// startTree starts the program with a shell script as the server, waits until a call is in
// progress, and returns the program with its descendants, the guard first.
func startTree(t *testing.T, script string) (*exec.Cmd, []int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(t.TempDir(), "ready")
	// The inner environment variable makes the test binary the server.
	cmd := exec.Command(self, "call", "hang", "ready="+ready, "--timeout", "0", "--", "sh", "-c", strings.ReplaceAll(script, `"$STUB"`, `env `+testRun+`=stub "$STUB"`))
	cmd.Env = append(os.Environ(), testRun+"=patchbay", "STUB="+self)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	deadline := time.Now().Add(20 * time.Second)
	for {
		if _, err := os.Stat(ready); err == nil {
			return cmd, descendantsOf(cmd.Process.Pid)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the call has not begun within 20 s; descendants %v; stderr: %s", descendantsOf(cmd.Process.Pid), stderr.String())
		}
		time.Sleep(10 * time.Millisecond) // there is no event to wait for
	}
}

// wantGone waits until processes have ended, and kills the remaining ones.
func wantGone(t *testing.T, pids []int) {
	t.Helper()
	deadline := time.Now().Add(gone)
	for {
		var left []string
		for _, pid := range pids {
			if _, state, name, ok := stat(pid); ok && state != "Z" {
				left = append(left, fmt.Sprintf("%d (%s)", pid, name))
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%v after the end of the program there are still %s", gone, strings.Join(left, ", "))
			for _, pid := range pids {
				syscall.Kill(pid, syscall.SIGKILL)
			}
			return
		}
		time.Sleep(10 * time.Millisecond) // as above
	}
}

// descendantsOf returns the descendants of a process, parents before children.
func descendantsOf(root int) []int {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if parent, _, _, ok := stat(pid); ok {
				children[parent] = append(children[parent], pid)
			}
		}
	}
	var out []int
	for next := []int{root}; len(next) > 0; next = next[1:] {
		slices.Sort(children[next[0]])
		out = append(out, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return out
}

// stat reads the state of a process from the kernel.
func stat(pid int) (parent int, state, name string, ok bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", "", false
	}
	text := string(data)
	begin, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if begin < 0 || end < begin {
		return 0, "", "", false
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) < 2 {
		return 0, "", "", false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, fields[0], text[begin+1 : end], err == nil
}
