package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// TestWindowsOfOnePerson counts the processes and memory of 11 windows of one person behind "up"
// with three older servers of Node (trap 8, F8). Windows with roots do not share a process of a
// server that asks for roots.
func TestWindowsOfOnePerson(t *testing.T) {
	const windows = 11
	key, entry := auth.NewAPIKey("ada")
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, line, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		flags []string
		roots bool
		want  int // processes of the servers
		most  int // maximum MB of all processes, with up and the guards; 0: no maximum
	}{
		{"session", nil, false, 3 * (1 + windows), 0},
		{"principal", []string{"--share", "principal"}, false, 3 * (1 + 1), 350},
		{"auth", []string{"--auth", "apikeys:" + keys}, false, 3 * (1 + 1), 350},
		// The server of files asks for roots, and so does "everything"; that with the memory does not.
		{"principal, windows with roots", []string{"--share", "principal"}, true, 2*(1+windows) + (1 + 1), 0},
		{"shared", []string{"--share", "shared"}, false, 3, 350},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want > 20 {
				long.Only(t)
			}
			dir := t.TempDir()
			sockets, err := os.MkdirTemp("", "pb") // their paths must be short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(sockets) })
			env := append(home(t), "XDG_RUNTIME_DIR="+sockets)
			servers := map[string]any{}
			for name, command := range map[string][]string{
				"everything": npmProgram(t, "mcp-server-everything"),
				"files":      append(npmProgram(t, "mcp-server-filesystem"), dir),
				"memory":     npmProgram(t, "mcp-server-memory"),
			} {
				servers[name] = map[string]any{"command": command[0], "args": command[1:], "env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.json")}}
			}
			text, err := json.Marshal(map[string]any{"mcpServers": servers})
			if err != nil {
				t.Fatal(err)
			}
			config := filepath.Join(dir, "mcp.json")
			if err := os.WriteFile(config, text, 0o600); err != nil {
				t.Fatal(err)
			}
			address := startServer(t, patchbay(t, append([]string{"up", "--config", config, "--http", "127.0.0.1:0"}, tt.flags...)...), env...)
			status := func() (all upStatus, text string) {
				stdout, stderr, err := run(t.Context(), patchbay(t, "status", "--json"), env...)
				if err != nil {
					t.Fatalf("status: %v\n%s", err, stderr)
				}
				var ups []upStatus
				if err := json.Unmarshal([]byte(stdout), &ups); err != nil || len(ups) != 1 {
					t.Fatalf("status printed %s: %v", stdout, err)
				}
				return ups[0], stdout
			}
			for i := range windows {
				c := &mcp.Client{Name: "editor", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}, Header: http.Header{"Authorization": {"Bearer " + key}}}
				if tt.roots {
					c.Roots = func(context.Context) ([]mcp.Root, error) {
						return []mcp.Root{{URI: "file://" + filepath.ToSlash(dir)}}, nil
					}
				}
				s, err := c.Dial(t.Context(), address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				for tool, args := range map[string]map[string]any{
					"everything_echo": {"message": fmt.Sprint(i)}, "files_list_directory": {"path": dir}, "memory_read_graph": nil,
				} {
					if res, err := s.CallTool(t.Context(), tool, args); err != nil || res.IsError {
						t.Fatalf("window %d: %s = %v, %v", i, tool, res, err)
					}
				}
				// A window that has called before its server asks for roots would lose the server's state.
				for began := time.Now(); tt.roots && i == 0; time.Sleep(50 * time.Millisecond) {
					up, text := status()
					asking := 0
					for _, s := range up.Servers {
						if s.Roots {
							asking++
						}
					}
					if asking == 2 {
						break
					}
					if time.Since(began) > 30*time.Second {
						t.Fatalf("%d servers ask for roots, want 2\n%s", asking, text)
					}
				}
			}
			up, stdout := status()
			processes, memory := 0, int64(0)
			for _, s := range up.Servers {
				processes += s.Processes
				memory += s.Memory
				if s.Losses > 0 {
					t.Errorf("%s: %d losses", s.Name, s.Losses)
				}
			}
			if processes != tt.want {
				t.Errorf("%d processes of servers, want %d\n%s", processes, tt.want, stdout)
			}
			family, total := costs(up.PID)
			fmt.Printf("report: %s: %d processes of servers with %d MB for themselves; with up and the guards %d processes, %d MB (PSS)\n", t.Name(), processes, memory/1e6, family, total)
			if tt.most > 0 && total > tt.most {
				t.Errorf("the processes take %d MB, want %d at most", total, tt.most)
			}
		})
	}
}

// upStatus is an up in the output of status --json.
type upStatus struct {
	PID     int
	Servers []struct {
		Name      string
		Processes int
		Memory    int64
		Losses    int
		Roots     bool
	}
}

// costs counts the processes from one on, and their proportional memory in MB. It is 0, 0 on
// systems without these figures.
func costs(root int) (processes, megabytes int) {
	if runtime.GOOS != "linux" {
		return 0, 0
	}
	family := []int{root}
	for i := 0; i < len(family); i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", family[i]))
		for _, path := range lists {
			text, _ := os.ReadFile(path) // empty: it has ended
			for _, field := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(field); err == nil && !slices.Contains(family, pid) {
					family = append(family, pid)
				}
			}
		}
	}
	total := 0
	for _, pid := range family {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
				kB, _ := strconv.Atoi(strings.Fields(rest)[0])
				total += kB
			}
		}
	}
	return len(family), total * 1024 / 1_000_000
}
