package health

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/wine"
)

// The socket of a killed gateway is removed, and the one of a gateway that is just opening it is
// kept. Both refuse connections, and neither is listed.
func TestGatewaysRemoveSockets(t *testing.T) {
	wine.Skip(t, "it has no Unix sockets")
	dir, err := os.MkdirTemp("", "pb") // short: the path of a socket has at most 104 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if err := os.Mkdir(filepath.Join(dir, "patchbay"), 0o700); err != nil {
		t.Fatal(err)
	}
	refusing := func(name string) string {
		path := filepath.Join(dir, "patchbay", name)
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		listener.SetUnlinkOnClose(false)
		listener.Close()
		return path
	}
	opening, killed := refusing("up-1.sock"), refusing("up-2.sock")
	old := time.Now().Add(-2 * openTime)
	if err := os.Chtimes(killed, old, old); err != nil {
		t.Skip("this system does not change the time of a socket: ", err)
	}
	if found, err := Gateways(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("Gateways = %v, %v; want none", found, err)
	}
	if _, err := os.Lstat(opening); err != nil {
		t.Error("a socket that is being opened was removed: ", err)
	}
	if _, err := os.Lstat(killed); !errors.Is(err, os.ErrNotExist) {
		t.Error("the socket of a killed gateway is still there: ", err)
	}
}

// A folder is found whatever its name is, and a path that is too long for a socket is named.
func TestSocketFolders(t *testing.T) {
	wine.Skip(t, "it has no Unix sockets")
	dir, err := os.MkdirTemp("", "p[b") // a pattern
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if found, err := Gateways(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("without a folder: %v, %v", found, err)
	}
	s, err := OpenSocket(func() *Report { return &Report{State: Ready, Version: "1"} }, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if found, err := Gateways(t.Context()); err != nil || len(found) != 1 {
		t.Errorf("Gateways = %v, %v; want one", found, err)
	}
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, strings.Repeat("x", 120)))
	if _, err := OpenSocket(nil, nil); err == nil || !strings.Contains(err.Error(), "set XDG_RUNTIME_DIR to a shorter folder") {
		t.Errorf("in a folder with a long name: %v", err)
	}
}

// A gateway that runs and does not answer is found, with its process id.
func TestSilentGateway(t *testing.T) {
	wine.Skip(t, "it has no Unix sockets")
	dir, err := os.MkdirTemp("", "pb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if err := os.Mkdir(filepath.Join(dir, "patchbay"), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "patchbay", "up-4711.sock")) // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	found, err := Gateways(t.Context())
	if err != nil || len(found) != 1 || !found[0].Silent() || found[0].Process() != 4711 || found[0].Report != nil {
		t.Errorf("Gateways = %+v, %v; want one that is silent", found, err)
	}
}

// Without a home folder, the error about the folder of the sockets says which variable names one.
func TestFolderWithoutHome(t *testing.T) {
	for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, "")
	}
	if dir, err := Folder(); err == nil || !strings.Contains(err.Error(), "set XDG_RUNTIME_DIR to a folder of your own") {
		t.Errorf("Folder() = %q, %v", dir, err)
	}
}
