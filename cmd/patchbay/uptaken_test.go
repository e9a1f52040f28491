package main

import (
	"net"
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
	try(other.Addr().String(), "cannot listen on "+other.Addr().String()+": another program listens there")
}
