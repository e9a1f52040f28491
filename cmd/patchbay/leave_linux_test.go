package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// leaving calls a stub that does not end at once. It returns how long the program ran after it had
// printed the result, and the processes that it started.
func leaving(t *testing.T, stub ...string) (took time.Duration, descendants []int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"call", "args", "text=hi", "--", "env", testRun + "=stub", self}, stub...)...)
	cmd.Env = append(os.Environ(), testRun+"=patchbay")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const want = `{"text":"hi"}` + "\n"
	got := make([]byte, len(want))
	late := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer late.Stop()
	if _, err := io.ReadFull(out, got); err != nil || string(got) != want {
		t.Fatalf("the program printed %q (%v), want %q", got, err, want)
	}
	printed := time.Now()
	descendants = descendantsOf(cmd.Process.Pid)
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return time.Since(printed), descendants
}

// TestLeavesDeafServer: a call ends soon after its result even if the server ends neither at the
// end of its input nor by SIGTERM, and that server ends soon after.
func TestLeavesDeafServer(t *testing.T) {
	took, descendants := leaving(t, "deaf")
	// It takes 0.2 s, and more on a busy machine; waiting for the server took 2.5 s.
	if took > 1500*time.Millisecond {
		t.Errorf("the program ended %v after its result, want at most 0.3 s", took)
	}
	if len(descendants) < 2 {
		t.Fatalf("the program has the descendants %v, want the guard and the server", descendants)
	}
	wantGone(t, descendants)
}

// TestLeavesTidyServer: a server that needs longer to shut down than the program waits can finish,
// even though it writes to a standard error that nobody reads.
func TestLeavesTidyServer(t *testing.T) {
	note := filepath.Join(t.TempDir(), "note")
	_, descendants := leaving(t, "tidy", note)
	wantGone(t, descendants)
	if data, err := os.ReadFile(note); err != nil || !bytes.Equal(data, []byte("tidy")) {
		t.Errorf("the server did not get to its end: %q, %v", data, err)
	}
}
