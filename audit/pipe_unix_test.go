//go:build !windows

package audit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/patchbay-dev/patchbay/audit"
)

// A pipe, a device or a folder that is named like a file of a log ends no reader: a rotated one is a
// fault and a warning, and the current one an error.
func TestPipeIsNotALog(t *testing.T) {
	for name, plant := range map[string]func(path string) error{
		"pipe":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(t.TempDir(), "a.jsonl")
		l := open(t, path, nil)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		rotated := strings.TrimSuffix(path, ".jsonl") + ".20200101T000000Z.000000000001.jsonl"
		if err := plant(rotated); err != nil {
			t.Fatal(err)
		}
		files, err := audit.Files(path)
		if err != nil || len(files) != 2 {
			t.Fatalf("%s: files %v, %v", name, files, err)
		}
		for which, lines := range map[string]func(...string) func(func(*audit.Entry, error) bool){
			"Read":     func(f ...string) func(func(*audit.Entry, error) bool) { return audit.Read(f...) },
			"Backward": func(f ...string) func(func(*audit.Entry, error) bool) { return audit.Backward(f...) },
		} {
			n, bad := 0, 0
			for _, err := range lines(files...) {
				var line *audit.LineError
				switch {
				case err == nil:
					n++
				case errors.As(err, &line) && strings.Contains(err.Error(), rotated+" is not a regular file"):
					bad++
				default:
					t.Errorf("%s: %s: %v", name, which, err)
				}
			}
			if n < 2 || bad != 1 {
				t.Errorf("%s: %s: %d lines and %d warnings", name, which, n, bad)
			}
			for _, err := range lines(rotated) {
				var line *audit.LineError
				if err == nil || errors.As(err, &line) || !strings.Contains(err.Error(), "is not a regular file") {
					t.Errorf("%s: %s of it alone: %v", name, which, err)
				}
			}
		}
		r, err := audit.Verify(files, nil)
		if err != nil || len(r.Faults) != 1 || r.Faults[0].Kind != audit.NotFile || r.Faults[0].File != rotated {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for e, err := range audit.Follow(ctx, path, 0) {
			if err != nil || e.Seq == 2 {
				cancel()
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("%s: Follow has no lines", name)
		}
		cancel()
		if err := os.Rename(rotated, path); name != "folder" && err != nil {
			t.Fatal(err)
		}
		if name != "folder" {
			if r, err := audit.Verify([]string{path}, nil); err != nil || r.Whole() || r.Faults[0].Kind != audit.NotFile {
				t.Errorf("%s: %v, %+v", name, err, r)
			}
			if l, err := audit.Open(path, nil); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
				t.Errorf("%s: opened %v, %v", name, l, err)
			}
		}
	}
}
