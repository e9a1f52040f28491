package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// running is a started "patchbay up".
type running struct {
	cmd    *exec.Cmd
	url    string
	file   string // its mcp.json
	banner string // its first output
	stderr *transcript
}

// transcript collects the output of a running program.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until the output matches a regular expression.
func (s *transcript) await(t *testing.T, want string) {
	t.Helper()
	until(t, "standard error has "+want, func() bool { return regexp.MustCompile(want).MatchString(s.String()) })
}

// until polls until is returns true. The error says what was awaited.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not so within a minute: %s", what)
		}
	}
}

// runtimeFolder makes a folder for sockets, whose paths must be short, and sets it for programs
// that are started afterwards.
func runtimeFolder(t *testing.T) string {
	t.Helper()
	dir := socketFolder(t)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

// socketFolder makes a folder for sockets.
func socketFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// writeConfig writes servers to an mcp.json, atomically.
func writeConfig(t *testing.T, file string, servers map[string]any) {
	t.Helper()
	config, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", config, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// startUp starts "up" on a configuration of the given servers, and waits until it has printed its
// table.
func startUp(t *testing.T, servers map[string]any, flags ...string) *running {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mcp.json")
	writeConfig(t, file, servers)
	r := beginUp(t, append([]string{"up", "--http", "127.0.0.1:0", "--config", file}, flags...)...)
	r.file = file
	return r
}

// beginUp starts a command line of "up" and waits until it has printed its table.
func beginUp(t *testing.T, args ...string) *running {
	t.Helper()
	r := new(running)
	r.cmd, r.stderr = program(t, args...)
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		r.cmd.Wait()
	})
	late := time.AfterFunc(30*time.Second, func() { r.cmd.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		r.banner += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "ctrl-C") {
			break
		}
	}
	r.url = regexp.MustCompile(`https?://127\.0\.0\.1:\d+/mcp`).FindString(r.banner)
	if r.url == "" {
		t.Fatalf("up printed no address: %q, %q, %v", r.banner, r.stderr, lines.Err())
	}
	return r
}

// stubServer returns the configuration of the stub as a command. The command sets its environment,
// since the guard shares that of the configuration.
func stubServer(t *testing.T, args ...string) map[string]any {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("needs the command env")
	}
	return map[string]any{"command": "env", "args": append([]string{testRun + "=stub", self}, args...)}
}

// Several servers, of which one is faulty and one ends at once, are one endpoint for clients of
// every revision.
func TestUp(t *testing.T) {
	r := startUp(t, map[string]any{
		"stub":    stubServer(t),
		"dies":    stubServer(t, "die"),
		"missing": map[string]any{"command": "no-such-program-anywhere"},
		"all":     map[string]any{"builtin": "everything"},
	})
	for _, want := range []string{
		`(?m)^stub +5 +0 +0 +stub 7, 2026-07-28$`,
		`(?m)^all +\d+ +\d+ +\d+ +everything `,
		`(?m)^dies +- .*exit status 3`,
		`(?m)^missing +- .*no-such-program-anywhere`,
		`(?m)^  claude mcp add --transport http patchbay ` + r.url + `$`,
	} {
		if !regexp.MustCompile(want).MatchString(r.banner) {
			t.Errorf("up printed\n%swant a line like %s", r.banner, want)
		}
	}
	// A host gets an address in JSON.
	for _, line := range strings.Split(r.banner, "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
			t.Errorf("no JSON to paste: %s", line)
		}
	}
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			c := &mcp.Client{Name: "host", Version: "1", Revisions: []mcp.Revision{rev}}
			c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			s, err := c.Dial(t.Context(), r.url)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			names := map[string]bool{}
			for tool, err := range s.Tools(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				names[tool.Name] = true
			}
			if !names["stub_args"] || !names["all_echo"] {
				t.Errorf("tools %v, want those of both servers", names)
			}
			res, err := s.CallTool(t.Context(), "stub_args", map[string]any{"count": 3})
			if err != nil || res.Text() != `{"count":3}` {
				t.Errorf("call of a command = %v, %v", res, err)
			}
			if rev >= mcp.V2025_06_18 {
				res, err = s.CallTool(t.Context(), "all_test_elicitation", map[string]any{"message": "Who?"})
				if err != nil || !strings.Contains(res.Text(), "action=decline") {
					t.Errorf("call that asks = %v, %v", res, err)
				}
			}
		})
	}
}

// A server that ends is restarted, and callers reach it under its name.
func TestUpStartsAServerAgain(t *testing.T) {
	r := startUp(t, map[string]any{"stub": stubServer(t)})
	s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "stub_exit", nil); err == nil {
		t.Error("the call that ends the server was answered")
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		res, err := s.CallTool(t.Context(), "stub_args", map[string]any{"count": 1})
		if err == nil && res.Text() == `{"count":1}` {
			return
		}
		var rpc *mcp.Error
		if !errors.As(err, &rpc) || time.Now().After(deadline) {
			t.Fatalf("call after the death of the server = %v, %v", res, err)
		}
		time.Sleep(50 * time.Millisecond) // callers are notified, but not at a known time
	}
}

// Trap F10: tool filters and groups of mcp.json apply in up, and up names settings that do not apply there.
func TestUpHonoursTools(t *testing.T) {
	runtimeFolder(t)
	stub := stubServer(t)
	stub["patchbay"] = map[string]any{"tools": map[string]any{"disabled": []string{"ar*"}}, "group": "work", "cache": "5m", "trusted": true}
	r := startUp(t, map[string]any{"stub": stub})
	if !regexp.MustCompile(`(?m)^work +4 `).MatchString(r.banner) {
		t.Errorf("up printed %s, want 4 tools", r.banner)
	}
	if res, err := callOnce(t, r.url, "work_args"); err == nil || !strings.Contains(err.Error(), "no tool") {
		t.Errorf("a call of a tool that is disabled = %v, %v", res, err)
	}
}

// Lines that a server prints between its messages are reported once.
func TestPrintedLinesAreToldOnce(t *testing.T) {
	r := startUp(t, map[string]any{"prints": stubServer(t, "prints")})
	if !regexp.MustCompile(`(?m)^prints +5 `).MatchString(r.banner) {
		t.Errorf("up printed\n%swant a server that is ready", r.banner)
	}
	if said := r.stderr.String(); strings.Count(said, "not an MCP message") != 1 || !strings.Contains(said, "line 0") {
		t.Errorf("of 20 printed lines up says:\n%s", said)
	}
}
