package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
)

// rotated writes a log of several files, and returns them.
func rotated(t *testing.T, path string, o audit.Options) []string {
	t.Helper()
	o.MaxBytes, o.Sync = 3000, audit.SyncNone
	l := open(t, path, &o)
	for range 30 {
		write(t, l, audit.Entry{Kind: audit.CallEnd, Call: "x"})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := audit.Files(path)
	if err != nil || len(files) < 3 {
		t.Fatalf("files %v, %v; want several", files, err)
	}
	return files
}

// A log without its current file is not whole, also if the file was cut and renamed like a rotated one.
func TestCurrentFileIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	key := testKey(t)
	o := &audit.VerifyOptions{Key: key.Public().(ed25519.PublicKey)}
	files := rotated(t, path, audit.Options{Key: key})
	if r := verify(t, o, files...); !r.Whole() || len(r.Notes) > 0 {
		t.Errorf("the whole log: %+v", r)
	}
	if r := verify(t, o, files[:2]...); !r.Whole() || len(r.Notes) != 1 || r.Notes[0].Kind != audit.Incomplete {
		t.Errorf("the first files alone: %+v", r)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	missing := func(what string) {
		t.Helper()
		left, err := audit.Files(path)
		if err != nil {
			t.Fatal(err)
		}
		r := verify(t, o, left...)
		if !slices.ContainsFunc(r.Faults, func(f audit.Fault) bool {
			return f.Kind == audit.Cut && strings.Contains(f.Text, "audit.jsonl is missing")
		}) {
			t.Errorf("%s: %+v", what, r)
		}
	}
	missing("removed")
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "audit.20991231T000000Z.000000099999.jsonl"), bytes.SplitAfter(data, []byte("\n"))[0], 0o600); err != nil {
		t.Fatal(err)
	}
	missing("renamed")
}

// Without FILE.head a note says that a cut end is not found.
func TestHeadIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	key := testKey(t)
	written(t, path, 50, audit.Options{Key: key})
	if err := os.Remove(path + ".head"); err != nil {
		t.Fatal(err)
	}
	r := verify(t, &audit.VerifyOptions{Key: key.Public().(ed25519.PublicKey)}, path)
	if !r.Whole() || len(r.Notes) != 1 || !strings.HasSuffix(r.Notes[0].File, "audit.jsonl.head") || !strings.Contains(r.Notes[0].Text, "is missing") {
		t.Errorf("%+v", r)
	}
}

// A log that was never rotated begins with line 1, or lines were removed.
func TestBeginningIsCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	written(t, path, 10, audit.Options{})
	lines := written(t, path, 10, audit.Options{})
	if err := os.WriteFile(path, bytes.Join(lines[10:], nil), 0o600); err != nil { // from the second start
		t.Fatal(err)
	}
	if r := verify(t, nil, path); len(r.Faults) != 1 || r.Faults[0].Kind != audit.Missing || r.Faults[0].Seq != 1 {
		t.Errorf("%+v", r)
	}
}

// A process that starts after a rotation, before the first line of the new file, begins it like any other.
func TestStartInAnEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	files := rotated(t, path, audit.Options{})
	if err := os.Rename(path, filepath.Join(t.TempDir(), "x")); err != nil {
		t.Fatal(err)
	}
	l := open(t, path, nil)
	write(t, l, audit.Entry{Kind: audit.CallEnd})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range files[:len(files)-1] {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if r := verify(t, nil, path); !r.Whole() || len(r.Notes) != 1 {
		t.Errorf("%+v", r)
	}
}
