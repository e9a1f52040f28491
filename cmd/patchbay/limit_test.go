package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// F2, with a command as the server: a silent call ends at its limit in up and bridge and frees its
// place under --limit concurrent=. A command that is silent in three calls in a row is restarted,
// and status shows that. So is one that floods its output with an endless line.
func TestStuckServer(t *testing.T) {
	runtimeFolder(t)
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} { // one process per client, and one for all
		t.Run(string(rev), func(t *testing.T) {
			t.Parallel()
			server := stubServer(t, "stuck", string(rev))
			server["patchbay"] = map[string]any{"callTimeout": "2s"}
			r := startUp(t, map[string]any{"db": server, "loud": stubServer(t, "stuck", string(rev))}, "--limit", "concurrent=1")
			c := &mcp.Client{Name: "host", Version: "1", Revisions: []mcp.Revision{rev}}
			s, err := c.Dial(t.Context(), r.url)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			pid := func(server string) string {
				t.Helper()
				got, err := mcp.CallAs[string](t.Context(), s, server+"_pid", nil)
				if err != nil {
					t.Fatalf("pid: %v", err)
				}
				return got
			}
			hang := func() {
				t.Helper()
				start := time.Now()
				_, err := s.CallTool(t.Context(), "db_hang", nil)
				if took := time.Since(start); err == nil || !strings.Contains(err.Error(), `server \"db\" sent nothing for 2s (callTimeout)`) || took < 2*time.Second {
					t.Errorf("the silent call = %v after %v, want its limit of 2s", err, took)
				}
			}
			status := func() string {
				var out, stderr strings.Builder
				if code := run(t.Context(), []string{"status", "-s", r.url}, strings.NewReader(""), &out, &stderr); code != exitOK {
					t.Errorf("status ended with %d: %s", code, &stderr)
				}
				return out.String()
			}
			first := pid("db")
			hang()
			hang()
			if again := pid("db"); again != first {
				t.Errorf("after two silent calls and a sign of life the server is another process: %s, %s", first, again)
			}
			hang()
			hang()
			hang()
			until(t, "the server was started again", func() bool {
				got, err := mcp.CallAs[string](t.Context(), s, "db_pid", nil)
				return err == nil && got != first
			})
			until(t, "status says so", func() bool {
				return strings.Contains(status(), "ago: it did not answer 3 calls in a row, each given up after 2s")
			})
			second, start := pid("loud"), time.Now()
			_, err = s.CallTool(t.Context(), "loud_flood", nil)
			if err == nil || !strings.Contains(err.Error(), "over the limit of 16777216 bytes") {
				t.Errorf("the call that floods = %v after %v, want an error that names the limit", err, time.Since(start))
			}
			until(t, "the server that floods was started again", func() bool {
				got, err := mcp.CallAs[string](t.Context(), s, "loud_pid", nil)
				return err == nil && got != second
			})
			until(t, "status says so of it", func() bool {
				return regexp.MustCompile(`has no end after 2\d{8} bytes; the limit is 16777216 bytes`).MatchString(status())
			})
		})
	}
}

// The limits of up and bridge come from the command line, or else from the configuration.
func TestLimitsOfServers(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	url := bridged(t, "--http", "127.0.0.1:0", "--timeout", "8s", "--env", testRun+"=stub", "--", self, "stuck", string(mcp.V2025_06_18))
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		c := &mcp.Client{Name: "host", Version: "1", Revisions: []mcp.Revision{rev}}
		s, err := c.Dial(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		start := time.Now()
		_, err = s.CallTool(t.Context(), "hang", nil)
		if took := time.Since(start); err == nil || !strings.Contains(err.Error(), "sent nothing for 8s (callTimeout)") || took < 8*time.Second {
			t.Errorf("%s: the silent call = %v after %v, want its limit of 8s", rev, err, took)
		}
	}
}
