//go:build !windows

package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
)

// A log has one writer, also under the name of a link.
func TestLinkedLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	l := open(t, path, nil)
	for name, link := range map[string]func(from, to string) error{"symbolic.jsonl": os.Symlink, "hard.jsonl": os.Link} {
		other := filepath.Join(dir, name)
		if err := link(path, other); err != nil {
			t.Fatal(err)
		}
		second, err := audit.Open(other, nil)
		if err == nil {
			second.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "another process writes to ") || name != "hard.jsonl" && !strings.Contains(err.Error(), "audit.jsonl;") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, filepath.Join(dir, "hard.jsonl"), nil)
}
