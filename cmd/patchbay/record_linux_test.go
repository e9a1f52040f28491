package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/patchbay-dev/patchbay/mcp"
)

// TestUpRecordFullDisk: while frames cannot be written, up --record makes all calls, status says why they are not
// recorded, and standard error does once. Afterwards frames are recorded again, and status counts the lost ones.
func TestUpRecordFullDisk(t *testing.T) {
	runtimeFolder(t)
	dir := filepath.Join(t.TempDir(), "frames")
	r := startUp(t, map[string]any{"stub": stubServer(t)}, "--record", dir)
	limit := func(bytes uint64) {
		t.Helper()
		if err := unix.Prlimit(r.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	s, err := (&mcp.Client{Name: "c", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	status := func() string {
		if _, err := s.CallTool(t.Context(), "stub_args", map[string]any{"text": "x"}); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		run(t.Context(), []string{"status", "-s", r.url}, strings.NewReader(""), &out, io.Discard)
		return out.String()
	}
	until(t, "frames are recorded", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		if len(files) == 0 {
			return false
		}
		info, err := os.Stat(files[0])
		return err == nil && info.Size() > 0 && strings.Contains(status(), "(frames "+dir+")")
	})
	limit(1)
	until(t, "status says that the disk is full", func() bool { return strings.Contains(status(), "frames are not recorded: ") })
	for range 20 {
		status()
	}
	if n := strings.Count(r.stderr.String(), "file too large"); n != 1 {
		t.Errorf("standard error tells it %d times: %s", n, r.stderr)
	}
	limit(unix.RLIM_INFINITY)
	until(t, "frames are recorded again", func() bool {
		now := status()
		return !strings.Contains(now, "frames are not recorded") && strings.Contains(now, " lost)")
	})
}
