//go:build !windows

package ownfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// A pipe in place of a file is read or an error, after a bounded wait (trap 24).
func TestReadNow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ownfile.Read(path, 10); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Read of a pipe = %q, %v", got, err)
	}
	if got, err := ownfile.ReadNow(path, 10); err != nil || len(got) != 0 {
		t.Errorf("a pipe that nobody writes = %q, %v", got, err)
	}
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.WriteString("half")
	if got, err := ownfile.ReadNow(path, 10); err == nil || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("a pipe that stays open = %q, %v", got, err)
	}
	w.Close()
	os.Remove(path)
	if err := os.WriteFile(path, []byte("0123456789ab"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ownfile.ReadNow(path, 10); err != nil || string(got) != "0123456789a" {
		t.Errorf("a file = %q, %v; want one byte more than is allowed", got, err)
	}
}
