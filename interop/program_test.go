package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is the patchbay binary, built once for all tests.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "patchbay-interop")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "patchbay.exe") // Windows needs the suffix, and other systems ignore it
	build := exec.Command("go", "build", "-o", path, "./cmd/patchbay")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return path, fmt.Errorf("build patchbay: %w\n%s", err, out)
	}
	return path, nil
})

// removeProgram removes the program that was built.
func removeProgram() {
	if programUsed {
		path, _ := program()
		os.RemoveAll(filepath.Dir(path))
	}
}

var programUsed bool // set by the first test to need the program, read after all

// patchbay is the command of the program with some arguments.
func patchbay(t *testing.T, args ...string) []string {
	t.Helper()
	programUsed = true
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{path}, args...)
}

// home is the environment of a program that must not see the user's own files.
func home(t *testing.T) []string {
	dir := t.TempDir()
	return []string{"HOME=" + dir, "USERPROFILE=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_STATE_HOME=" + dir}
}

// TestCallReferenceServers calls the reference servers from the command line.
func TestCallReferenceServers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cord.txt"), []byte("a cord\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	memory := "MEMORY_FILE_PATH=" + filepath.Join(dir, "memory.json")
	everything := npmProgram(t, "mcp-server-everything")
	files := append(npmProgram(t, "mcp-server-filesystem"), dir)
	tests := []struct {
		name   string
		args   []string
		server []string
		env    string
		want   string
	}{
		{"everything", []string{"echo", "message=hi"}, everything, "", "Echo: hi"},
		{"everything numbers", []string{"get-sum", "a=2", "b=3"}, everything, "", "The sum of 2 and 3 is 5."},
		{"filesystem list", []string{"list_directory", "path=" + dir}, files, "", "[FILE] cord.txt"},
		{"filesystem read", []string{"read_text_file", "path=" + filepath.Join(dir, "cord.txt")}, files, "", "a cord"},
		{"memory write", []string{"create_entities", `entities=[{"name":"Ada","entityType":"person","observations":["plugs cords"]}]`},
			npmProgram(t, "mcp-server-memory"), memory, "plugs cords"},
		{"memory read", []string{"read_graph"}, npmProgram(t, "mcp-server-memory"), memory, "plugs cords"},
	}
	for _, tt := range tests { // in order: the memory is read after it is written
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			command := patchbay(t, "call")
			command = append(append(append(command, tt.args...), "--"), tt.server...)
			stdout, stderr, err := run(ctx, command, append(home(t), tt.env)...)
			if err != nil {
				t.Fatalf("patchbay call %q: %v\nstdout: %s\nstderr: %s", tt.args, err, stdout, stderr)
			}
			if !strings.Contains(stdout, tt.want) {
				t.Errorf("patchbay call %q printed %q, want %q in it\nstderr: %s", tt.args, stdout, tt.want, stderr)
			}
		})
	}
}

// TestCallNpx runs the line of the README. npx finds the installed package and must
// not download another.
func TestCallNpx(t *testing.T) {
	path := nodePath(t)
	npx, err := exec.LookPath("npx")
	if err != nil {
		if required() {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	command := patchbay(t, "call", "echo", "message=hi", "--", npx, "-y", "@modelcontextprotocol/server-everything")
	cmd := inGroup(ctx, command)
	cmd.Dir = npmFile()
	cmd.Env = append(os.Environ(), append(home(t), path, "npm_config_offline=true", "npm_config_update_notifier=false")...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if got, want := strings.TrimSpace(stdout.String()), "Echo: hi"; err != nil || got != want {
		t.Errorf("%q printed %q (error %v), want %q\nstderr: %s", command, got, err, want, stderr.String())
	}
}
