package record

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Files has the trace files in the order in which they were begun, and no others.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	want := []string{
		"trace-2026-11-22-235900-zzzzzz-0001.jsonl", "trace-2026-11-23-090012-k3f7q2-9999.jsonl",
		"trace-2026-11-23-090012-k3f7q2-10000.jsonl", "trace-2026-11-23-100000-aaaaaa-0001.jsonl",
	}
	for i, name := range append(slices.Clone(want), "notes.txt", "trace-mine.jsonl") {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if i < len(want) {
			want[i] = filepath.Join(dir, name)
		}
	}
	if got, err := Files(dir); err != nil || !slices.Equal(got, want) {
		t.Errorf("Files = %q, %v, want %q", got, err, want)
	}
	if got, err := Files(filepath.Join(dir, "none")); err == nil {
		t.Errorf("Files of a folder that does not exist = %q", got)
	}
}
