package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/mcp"
)

// F8: three windows of one person use an older server. "share" decides who shares its processes,
// and how many there are besides the one for lists.
func TestUpShare(t *testing.T) {
	runtimeFolder(t)
	key, entry := auth.NewAPIKey("alice")
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, line, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name      string
		file      string // "share" at the top of the file
		server    string // "share" of the server
		flags     []string
		share     string
		processes int
	}{
		{"nothing", "", "", nil, "session", 4},
		{"the flag", "", "", []string{"--share", "principal"}, "principal", 2},
		{"the file", "principal", "", nil, "principal", 2},
		{"the flag before the file", "principal", "", []string{"--share", "shared"}, "shared", 1},
		{"the server before both", "principal", "per-client", []string{"--share", "shared"}, "session", 4},
		{"callers who are known", "", "", []string{"--auth", "apikeys:" + keys}, "principal", 2},
		{"callers who are known, and the file", "session", "", []string{"--auth", "apikeys:" + keys}, "session", 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := stubServer(t, "stuck", string(mcp.V2025_11_25))
			if tt.server != "" {
				server["patchbay"] = map[string]any{"share": tt.server}
			}
			r := startUp(t, map[string]any{"stub": server}, tt.flags...)
			row := func() (row health.Server) {
				ups, err := health.Gateways(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, u := range ups {
					if u.Report != nil && u.URL == r.url {
						row = u.Servers[0]
					}
				}
				return row
			}
			if tt.file != "" { // up follows the file
				config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"stub": server}, "patchbay": map[string]any{"share": tt.file}})
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(r.file, config, 0o600); err != nil {
					t.Fatal(err)
				}
			} else if warned := strings.Contains(r.banner, "Each session that uses stub starts its own process"); warned != (tt.share == "session") {
				t.Errorf("up warns of processes: %v\n%s", warned, r.banner)
			}
			until(t, "the server is of the class "+tt.share, func() bool { return row().Share == tt.share })
			for range 3 {
				c := &mcp.Client{Name: "host", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}, Header: http.Header{"Authorization": {"Bearer " + key}}}
				s, err := c.Dial(t.Context(), r.url)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if res, err := s.CallTool(t.Context(), "stub_args", map[string]any{"count": 3}); err != nil || res.Text() != `{"count":3}` {
					t.Fatalf("call = %v, %v", res, err)
				}
			}
			if got := row(); got.Processes != tt.processes {
				t.Errorf("%d processes, want %d: %+v", got.Processes, tt.processes, got)
			}
		})
	}
}
