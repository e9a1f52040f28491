package interop

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/internal/long"
)

// behind are the servers behind the gateway of TestGateway: of both eras, on both wires.
var behind = []struct {
	name string
	peer string
	wire wire
}{
	{"ts1", "ts1", stdio},    // up to 2025-11-25
	{"ts1-http", "ts1", web}, // the same, in sessions over HTTP
	{"ts2", "ts2", stdio},    // 2026-07-28
	{"gosdk", "gosdk", web},
	{"mcpgo", "mcpgo", stdio},
}

// up starts "patchbay up" in front of the servers above, a bundled one and some more, and returns
// its address.
func up(t *testing.T, more map[string]any) string {
	t.Helper()
	servers := map[string]any{"conjugate": map[string]any{"builtin": "conjugate"}}
	maps.Copy(servers, more)
	for _, s := range behind {
		var p peer
		for _, p = range peers {
			if p.name == s.peer {
				break
			}
		}
		command := p.serve(s.wire)
		if s.wire == web {
			servers[s.name] = map[string]any{"type": "http", "url": startServer(t, command)}
			continue
		}
		servers[s.name] = map[string]any{"command": command[0], "args": command[1:]}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	address := startServer(t, patchbay(t, "up", "--config", config, "--http", "127.0.0.1:0"), home(t)...)
	ready(t, address)
	return address
}

// ready waits until all servers behind an "up" are ready: before, its lists may lack some.
func ready(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/mcp")+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil && strings.HasPrefix(string(text), `{"state":"ready"`) {
			return
		}
		if _, late := receive(ctx, tick.C, "tick"); late != nil {
			t.Fatalf("up is not ready: %s", text)
		}
	}
}

// TestGateway makes every client ask each server behind "up" everything that it asks a server
// directly: two rounds of elicitation, sampling, progress, logs, changes and cancellation go
// through between all pairs of eras, and so do questions during another call (trap 6): those of
// the TypeScript server do not name a call, neither on its pipe nor on its GET stream.
func TestGateway(t *testing.T) {
	ours := peer{name: "patchbay", ask: askOurs, as: all}
	for _, client := range append([]peer{ours}, peers...) {
		for _, revision := range client.as {
			if revision == auto || client.name != ours.name && revision != v2025_11_25 && revision != v2026_07_28 {
				continue
			}
			t.Run(client.name+"/"+revision, func(t *testing.T) {
				t.Parallel()
				node(t)
				address := up(t, nil)
				for _, s := range behind {
					t.Run(s.name, func(t *testing.T) { throughGateway(t, client, revision, address, s.name) })
				}
			})
		}
	}
}

func throughGateway(t *testing.T, client peer, revision, address, server string) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	to := target{wire: web, revision: revision, url: address, prefix: server + "_"}
	to.skip = gapsOf(client.name, "patchbay", web, revision)
	if revision >= v2026_07_28 && !long.On() { // each call beside another waits 2 s for its turn
		to.skip = append(to.skip, "sampleBeside")
	}
	got, err := client.ask(ctx, to)
	if err != nil {
		t.Fatalf("%s client on %s behind the gateway: %v", client.name, server, err)
	}
	got.Resources = slices.DeleteFunc(got.Resources, func(uri string) bool { return !strings.HasPrefix(uri, "test://") })
	want := goodReport("patchbay", revision)
	if slices.Contains(to.skip, "cancelled") {
		want.Cancelled, want.AskBeside = false, ""
	}
	if slices.Contains(to.skip, "sampleBeside") {
		want.SampleBeside = ""
	}
	if revision < v2025_06_18 {
		declined(t, &want, got, to.skip)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s client on %s behind the gateway, report (-want +got):\n%s", client.name, server, diff)
	}
}

// declined adjusts the expectation for revisions without elicitation: questions fail, or are
// declined for the user if a server still asks them (T-23).
func declined(t *testing.T, want *report, got report, skip []string) {
	t.Helper()
	want.Ask, want.Twice, want.AskBeside = got.Ask, got.Twice, got.AskBeside
	for tool, answer := range map[string]string{"ask": got.Ask, "twice": got.Twice, "askBeside": got.AskBeside} {
		text, failed := got.Errors[tool]
		if failed {
			want.Errors[tool] = text
		}
		if !slices.Contains(skip, tool) && (failed == (answer != "") || strings.Contains(answer, "Ada")) {
			t.Errorf("%q, where the user cannot be asked, = %q, error %q", tool, answer, text)
		}
	}
}
