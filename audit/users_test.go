package audit_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
)

// A log that processes share is not opened by one that wants it alone, and the other way round; an error
// says so. The lines of both are safe.
func TestSharedOrAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	line := audit.Entry{Kind: audit.CallEnd, Outcome: "ok"}
	first, second := open(t, path, &audit.Options{Shared: true}), open(t, path, &audit.Options{Shared: true})
	for i, l := range []*audit.Log{first, second} {
		if err := l.Write(t.Context(), line); err != nil {
			t.Fatal(err)
		}
		if !audit.InUse(path) {
			t.Errorf("log %d is open and not in use", i)
		}
		alone, err := audit.Open(path, nil)
		if err == nil {
			alone.Close()
			t.Fatal("a log that others share is open for one alone")
		}
		if !strings.Contains(err.Error(), "other processes share "+path) || !strings.Contains(err.Error(), "name another file") {
			t.Errorf("the error is %v", err)
		}
		if err := l.Write(t.Context(), line); err != nil {
			t.Errorf("after that Open: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if audit.InUse(path) {
		t.Error("the log is in use after both are closed")
	}
	alone := open(t, path, nil)
	if !audit.InUse(path) {
		t.Error("the log of one process is not in use")
	}
	shared, err := audit.Open(path, &audit.Options{Shared: true})
	if err == nil {
		shared.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "another process writes to "+path) {
		t.Errorf("the error is %v", err)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, nil, path); !r.Whole() || len(calls(t, path)) != 4 {
		t.Errorf("%d lines, %+v", len(calls(t, path)), r)
	}
}

// A start without a stop before it is noted, once for each process that was killed, and neither for the
// short runs of a shared log nor for a process that opens its log again.
func TestKilledNote(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	notes := func(path string) (n int) {
		r := verify(t, nil, path)
		if !r.Whole() {
			t.Errorf("%+v", r)
		}
		for _, note := range r.Notes {
			if note.Kind == audit.Killed {
				n++
			}
		}
		return n
	}
	run := func() { // and closes the log
		l := open(t, path, nil)
		if err := l.Write(t.Context(), audit.Entry{Kind: audit.CallEnd}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	killed := func() { // leaves the file as it was before Close
		l := open(t, path, nil)
		if err := l.Write(t.Context(), audit.Entry{Kind: audit.CallEnd}); err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, kept, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run()
	run()
	if n := notes(path); n != 0 {
		t.Errorf("%d notes after two runs", n)
	}
	killed()
	if n := notes(path); n != 0 {
		t.Errorf("%d notes while the process may run", n)
	}
	run()
	killed()
	killed()
	run()
	if n := notes(path); n != 3 {
		t.Errorf("%d notes, want 3", n)
	}
	shared := filepath.Join(dir, "calls.jsonl")
	for i := range 3 {
		l := open(t, shared, &audit.Options{Shared: true})
		if err := l.Write(context.Background(), audit.Entry{Kind: audit.CallEnd}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if i == 1 { // a start with a fragment
			f, err := os.OpenFile(shared, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteString("{")
			f.Close()
		}
	}
	if n := notes(shared); n != 0 {
		t.Errorf("%d notes in a shared log", n)
	}
}

// A log has an id, in all its files; another log has another one.
func TestLogID(t *testing.T) {
	dir := t.TempDir()
	ids := map[string]bool{}
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		path := filepath.Join(dir, name)
		for range 2 {
			l := open(t, path, &audit.Options{MaxBytes: 1000, Sync: audit.SyncNone})
			for range 20 {
				if err := l.Write(t.Context(), audit.Entry{Kind: audit.CallEnd}); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		files, err := audit.Files(path)
		if err != nil || len(files) < 4 {
			t.Fatal(files, err)
		}
		id := verify(t, nil, files...).Log
		if len(id) != 16 || ids[id] {
			t.Errorf("%s has the id %q", name, id)
		}
		ids[id] = true
		for i := range files {
			if r := verify(t, nil, files[i:]...); r.Log != id {
				t.Errorf("from %s on the id is %q, want %q", files[i], r.Log, id)
			}
		}
	}
}
