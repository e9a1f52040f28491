//go:build unix

package skills_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/skills"
)

// A file that became a named pipe is refused; opening it would wait for a writer.
func TestPipeIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	note := filepath.Join(dir, "a", "note.md")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, "a"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "a", "SKILL.md"), manifest("a").Data, 0o600))
	must(os.WriteFile(note, []byte("note"), 0o600))
	srv := &mcp.Server{Name: "s"}
	_, err := skills.Serve(srv, os.DirFS(dir))
	must(err)
	s := mcptest.Connect(t, srv, client(), mcp.V2025_11_25)
	must(os.Remove(note))
	must(syscall.Mkfifo(note, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = s.ReadResource(ctx, "skill://a/note.md")
	if err == nil || ctx.Err() != nil {
		t.Errorf("Read of a pipe: %v, want a refusal at once", err)
	}
	// Give a waiting reader a writer, so that a failed test ends.
	if w, err := os.OpenFile(note, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		w.Close()
	}
}
