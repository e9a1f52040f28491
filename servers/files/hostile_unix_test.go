//go:build unix

package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/patchbay-dev/patchbay/servers/files"
)

// Pipes, sockets and devices are refused, without waiting for anybody.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"x": "x"})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Skip(err)
	}
	s := connect(t, files.Options{Roots: []string{dir, "/dev"}})
	name := filepath.Base(dir) + "/"
	for _, path := range []string{name + "pipe", "dev/null", "dev/zero", "dev/tty"} {
		if _, err := os.Stat("/dev/zero"); err != nil && strings.HasPrefix(path, "dev") {
			continue
		}
		refused(t, s, "read", args{"path": path})
		refused(t, s, "write", args{"path": path, "content": "x", "overwrite": true})
		refused(t, s, "edit", args{"path": path, "edits": []args{{"old_text": "x", "new_text": "y"}}})
		refused(t, s, "move", args{"from": name + "x", "to": path})
	}
	call(t, s, "search", args{"text": "x", "path": name})
	if got := call(t, s, "info", args{"path": name + "pipe"}).Text(); !strings.Contains(got, `"type":"other"`) {
		t.Errorf("info = %s", got)
	}
}

// Modes are kept, and respected.
func TestModes(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"script": "#!/bin/sh\n", "locked": "x\n"})
	for name, mode := range map[string]os.FileMode{"script": 0o751, "locked": 0o444} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	s := connect(t, files.Options{Roots: []string{dir}})
	call(t, s, "edit", args{"path": "script", "edits": []args{{"old_text": "sh", "new_text": "bash"}}})
	call(t, s, "write", args{"path": "script", "content": "again", "overwrite": true})
	if info, err := os.Stat(filepath.Join(dir, "script")); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode = %v, %v; want 0751", info.Mode(), err)
	}
	for tool, in := range map[string]args{
		"write": {"path": "locked", "content": "y", "overwrite": true},
		"edit":  {"path": "locked", "edits": []args{{"old_text": "x", "new_text": "y"}}},
	} {
		if got := refused(t, s, tool, in); !strings.Contains(got, "write-protected") || get(t, dir, "locked") != "x\n" {
			t.Errorf("%s of a file that is write-protected = %q", tool, got)
		}
	}
	umask := syscall.Umask(0)
	syscall.Umask(umask)
	call(t, s, "write", args{"path": "new", "content": ""})
	if info, err := os.Stat(filepath.Join(dir, "new")); err != nil || info.Mode().Perm() != 0o666&^os.FileMode(umask) {
		t.Errorf("mode of a new file = %v, %v", info.Mode(), err)
	}
}

// Names that are not UTF-8 are shown and left alone.
func TestNamesThatAreNoText(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "caf\xe9"), nil, 0o666); err != nil {
		t.Skipf("no such names here: %v", err)
	}
	put(t, dir, map[string]string{"new\nline": "x"})
	s := connect(t, files.Options{Roots: []string{dir}})
	got := as[entries](t, call(t, s, "list", nil))
	if got.paths()[0] != "caf\uFFFD" || !strings.Contains(got.Note, "not UTF-8") {
		t.Errorf("list = %+v", got)
	}
	if got := call(t, s, "tree", nil).Text(); got != ".\n└── \"new\\nline\"\n" {
		t.Errorf("tree = %q", got)
	}
}
