package audit

import (
	"bytes"
	"crypto/ed25519"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A start without FILE.head is an error of the Logger, and a note of each later Verify.
func TestHeadMissing(t *testing.T) {
	path, key := filepath.Join(t.TempDir(), "audit.jsonl"), testKey(t)
	var told bytes.Buffer
	changed := ""
	run := func() {
		t.Helper()
		l, err := Open(path, &Options{Key: key, Logger: slog.New(slog.NewTextHandler(&told, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		changed = l.Stats().Changed
	}
	run()
	run()
	if told.Len() > 0 || changed != "" {
		t.Errorf("an intact log: %s", told.String())
	}
	if err := os.Remove(headPath(path)); err != nil {
		t.Fatal(err)
	}
	if run(); !strings.Contains(changed, "last checkpoint") {
		t.Errorf("the Log says that it was changed: %q", changed)
	}
	run()
	if got := told.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, headPath(path)) {
		t.Errorf("the Logger has %q, want one error", got)
	}
	r, err := Verify([]string{path}, &VerifyOptions{})
	if err != nil || !r.Whole() || len(r.Notes) != 1 || r.Notes[0].Kind != Incomplete || !strings.Contains(r.Notes[0].Text, "was missing") {
		t.Errorf("%v: %+v", err, r)
	}
}

// An end that was cut off is an error of the Logger: at the start, and at once while the log is open.
func TestCutIsTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files are not cut on Windows")
	}
	path, key := filepath.Join(t.TempDir(), "audit.jsonl"), testKey(t)
	var told bytes.Buffer
	start := func() *Log {
		t.Helper()
		l, err := Open(path, &Options{Key: key, Logger: slog.New(slog.NewTextHandler(&told, nil))})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	cut := func() {
		t.Helper()
		info, err := os.Stat(path)
		if err == nil {
			err = os.Truncate(path, info.Size()-100)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	l := start()
	for range 3 {
		if err := l.Write(t.Context(), Entry{Kind: CallBegin}); err != nil {
			t.Fatal(err)
		}
	}
	cut()
	if err := l.Write(t.Context(), Entry{Kind: CallBegin}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := told.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "while it was open") || strings.Contains(got, "map[") || !strings.Contains(l.Stats().Changed, "while it was open") {
		t.Errorf("cut while open: the Logger has %q", got)
	}
	cut()
	told.Reset()
	if err := start().Close(); err != nil {
		t.Fatal(err)
	}
	if got := told.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "has lost its end") {
		t.Errorf("cut before the start: the Logger has %q", got)
	}
	r, err := Verify([]string{path}, nil)
	if err != nil || len(r.Faults) != 2 || r.Faults[0].Kind != Cut || r.Faults[1].Kind != Cut {
		t.Errorf("%v: %+v", err, r)
	}
}

func testKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	key, err := LoadKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
