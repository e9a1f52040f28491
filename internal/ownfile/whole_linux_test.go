package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// full makes writes beyond a size of their file fail, as a full disk does.
func full(t *testing.T, size uint64) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
			t.Error(err)
		}
		signal.Reset(syscall.SIGXFSZ)
	})
}

// A full disk leaves neither half a line nor an empty file.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"ended": "first\n", "torn": "first"} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("full", func(t *testing.T) {
		full(t, 20)
		long := []byte(strings.Repeat("x", 40))
		for name, want := range map[string]string{"ended": "first\n", "torn": "first"} {
			if err := AppendLine(path(name), long); err == nil {
				t.Errorf("%s: no error", name)
			}
			if got, err := os.ReadFile(path(name)); err != nil || string(got) != want {
				t.Errorf("%s has %q, %v; want %q", name, got, err, want)
			}
		}
		for name, write := range map[string]func(string) error{
			"appended": func(p string) error { return AppendLine(p, long) },
			"created":  func(p string) error { return Create(p, long, 0o600) },
		} {
			if err := write(path(name)); err == nil {
				t.Errorf("%s: no error", name)
			}
			if _, err := os.Stat(path(name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: a file is left: %v", name, err)
			}
		}
	})
	for name, want := range map[string]string{"ended": "first\nsecond\n", "torn": "first\nsecond\n", "appended": "second\n"} {
		if err := AppendLine(path(name), []byte("second")); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(path(name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v; want %q", name, got, err, want)
		}
	}
	if err := Create(path("created"), []byte("a"), 0o600); err != nil {
		t.Error(err)
	}
	if err := Create(path("created"), []byte("b"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("of a file that exists: %v", err)
	}
	if got, err := os.ReadFile(path("created")); err != nil || string(got) != "a" {
		t.Errorf("the new file has %q, %v", got, err)
	}
}
