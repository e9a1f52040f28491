//go:build unix

package accesslog

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe without a reader is an error, not a wait.
func TestOpenPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := Open(path, nil, noFault(t)); err == nil || !strings.Contains(err.Error(), "nobody reads this pipe") {
		t.Errorf("Open = %v", err)
	}
}
