package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/wine"
)

// Trap 29: up describes the owner of its address only by facts: an up that status lists by its
// process, one that it does not list, and another program.
func TestAddressIsTaken(t *testing.T) {
	wine.Skip(t, "it has no Unix sockets, by which up is found")
	runtimeFolder(t)
	r := startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}})
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	at := strings.TrimSuffix(strings.TrimPrefix(r.url, "http://"), listen.Path)
	try := func(address, want string) {
		t.Helper()
		got := typedRun(t, "", exitLocal, "up", "--http", address, "--config", r.file)
		if !strings.Contains(got, want) || strings.Contains(got, "up of another user") {
			t.Errorf("up at an address that is taken: %s; want it to say %q", got, want)
		}
	}
	try(at, "another patchbay already serves "+r.url+": pid ")
	runtimeFolder(t)
	try(at, "is used by a patchbay up that patchbay status cannot see: ")
	for _, member := range []string{"http", "metrics"} {
		file := filepath.Join(t.TempDir(), "g.yaml")
		addresses := map[string]string{"http": "127.0.0.1:0", "metrics": "127.0.0.1:0", member: other.Addr().String()}
		text := fmt.Sprintf("listen: {http: '%s', metrics: '%s'}\n", addresses["http"], addresses["metrics"])
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := typedRun(t, "", exitLocal, "up", "--gateway", file, "--config", r.file)
		if !strings.Contains(got, "set listen."+member+" in "+file+" to another address; port 0: any free port") || strings.Contains(got, "--"+member+" ") {
			t.Errorf("up with a taken listen.%s: %s; want a hint that names the member", member, got)
		}
	}
	try(other.Addr().String(), "cannot listen on "+other.Addr().String()+": another program listens there")
}
