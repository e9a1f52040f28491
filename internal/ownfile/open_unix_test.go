//go:build unix

package ownfile

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Neither a pipe without a writer nor one whose writer is silent holds a program that is to end.
func TestOpenPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := Open(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("without a writer: %v", err)
	}
	w, err := os.OpenFile(path, os.O_RDWR, 0) // also a reader: it ends the open above
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	f, err := Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(w, "x"); err != nil {
		t.Fatal(err)
	}
	if got := make([]byte, 1); func() bool { _, err := f.Read(got); return err != nil || got[0] != 'x' }() {
		t.Errorf("read %q", got)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a silent writer: %v", err)
	}
}
