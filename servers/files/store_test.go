package files

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

// at is something in a root of its own.
func at(t testing.TB, dir, rel string) target {
	t.Helper()
	s := newServer(Options{})
	var err error
	if s.roots, err = openRoots([]string{dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeRoots(s.roots) })
	to, err := s.whole().find(rel)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// alone checks that a folder has one file.
func alone(t testing.TB, dir string) {
	t.Helper()
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("the folder has %v, %v; want one file", names, err)
	}
}

// A file that cannot be written as a whole leaves the old one as it was, and nothing else.
func TestStoreFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write(t, path, "old")
	to := at(t, dir, "f")
	over := storing{overwrite: true}

	full := io.MultiReader(strings.NewReader(strings.Repeat("x", 100_000)), iotest.ErrReader(syscall.ENOSPC))
	if _, err := to.store(t.Context(), full, over); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("store on a full disk = %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := to.store(ctx, strings.NewReader("x"), over); !errors.Is(err, gone) {
		t.Errorf("store for nobody = %v", err)
	}

	read, err := to.place.dir.Stat("f")
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "older")
	if _, err := to.store(t.Context(), strings.NewReader("x"), storing{overwrite: true, read: read}); err == nil || !strings.Contains(err.Error(), "changed by another program") {
		t.Errorf("store over a change = %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "older" {
		t.Errorf("the file is %q", b)
	}
	alone(t, dir)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := to.store(t.Context(), strings.NewReader("x"), storing{overwrite: true, read: read}); err == nil || !strings.Contains(err.Error(), "removed meanwhile") {
		t.Errorf("store of what was removed = %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

// A file that another program makes meanwhile is not replaced.
func TestStoreKeepsWhatAppears(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	late := readerFunc(func([]byte) (int, error) {
		write(t, path, "theirs")
		return 0, io.EOF
	})
	if _, err := at(t, dir, "f").store(t.Context(), late, storing{}); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("store = %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "theirs" {
		t.Errorf("the file is %q", b)
	}
	alone(t, dir)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Of two that make a file at once one does.
func TestStoreOnce(t *testing.T) {
	dir := t.TempDir()
	to := at(t, dir, "f")
	errs := make(chan error, 8)
	for i := range cap(errs) {
		go func() {
			_, err := to.store(t.Context(), strings.NewReader(strings.Repeat("x", i)), storing{})
			errs <- err
		}()
	}
	made := 0
	for range cap(errs) {
		if err := <-errs; err == nil {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d made the file, want 1", made)
	}
	alone(t, dir)
}
