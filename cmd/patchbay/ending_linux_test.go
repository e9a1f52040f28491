package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A closed terminal ends up as ctrl-C does, with the last lines of its audit log, also if it sends
// SIGHUP twice. With nohup it ends nothing.
func TestUpHangup(t *testing.T) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // else programs inherit nohup of the tests
	defer signal.Reset(syscall.SIGHUP)
	r, log, _ := audited(t, "audit: {file: audit.jsonl}\n", map[string]any{"stub": stubServer(t)})
	for range 2 {
		if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // else the system merges the two
	}
	late := time.AfterFunc(time.Minute, func() { r.cmd.Process.Kill() })
	r.cmd.Wait()
	late.Stop()
	if !r.cmd.ProcessState.Exited() {
		t.Errorf("it ended with %v, want a status", r.cmd.ProcessState)
	}
	var last *audit.Entry
	for e, err := range audit.Read(log) {
		if err != nil {
			t.Fatal(err)
		}
		last = e
	}
	if last == nil || last.Event != audit.EventStop {
		t.Errorf("the last line of the audit log is %+v, want a stop", last)
	}

	file := filepath.Join(t.TempDir(), "mcp.json")
	writeConfig(t, file, map[string]any{"stub": stubServer(t)})
	cmd, stderr := program(t, "up", "--http", "127.0.0.1:0", "--config", file)
	sh := exec.Command("sh", append([]string{"-c", `trap '' HUP; exec "$@"`, "sh"}, cmd.Args...)...)
	sh.Env, sh.Stdout = cmd.Env, stderr
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		sh.Process.Kill()
		sh.Wait()
	}()
	stderr.await(t, "ctrl-C ends it")
	if err := sh.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", sh.Process.Pid)); err != nil || strings.Contains(string(status), "State:\tZ") {
		t.Errorf("with nohup it has ended: %v", err)
	}
}

// A full disk leaves no part of an entry in the file of keys, which would keep up from starting.
func TestTokenKeyFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	text := "#" + strings.Repeat("-", 1024-60-2) + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	add := func() error {
		cmd, _ := program(t, "token", "key", "dave", "--file", path)
		limited := exec.Command("sh", append([]string{"-c", `trap '' XFSZ; ulimit -f 2; exec "$@"`, "sh"}, cmd.Args...)...) // 1024 bytes
		limited.Env = cmd.Env
		return limited.Run()
	}
	if err := add(); err == nil {
		t.Error("no error")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("the file has %q, %v", strings.TrimPrefix(string(got), text), err)
	}
}

// A full disk at the end: the number of the lines that are lost is said.
func TestUpEndsOnFullDisk(t *testing.T) {
	r, log, _ := audited(t, "audit: {file: audit.jsonl, onFailure: pass}\n", map[string]any{"stub": stubServer(t)})
	s, err := (&mcp.Client{Name: "desk", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(r.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(info.Size()), Max: unix.RLIM_INFINITY}, nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.CallTool(t.Context(), "stub_args", map[string]any{"count": 1}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	r.stop(t)
	if got, want := r.stderr.String(), regexp.MustCompile(`warning: the last [6-9] lines of the audit log are lost: .*file too large`); !want.MatchString(got) {
		t.Errorf("it said %s, want %s", got, want)
	}
}
