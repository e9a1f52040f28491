package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/mcp"
)

// socketUnit has listeners that the test holds as systemd does, and passes to one up after the other.
type socketUnit struct {
	addresses []string
	files     []*os.File
}

func newSocketUnit(t *testing.T, listeners ...net.Listener) *socketUnit {
	t.Helper()
	u := new(socketUnit)
	for _, l := range listeners {
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		t.Cleanup(func() { f.Close() })
		u.addresses, u.files = append(u.addresses, l.Addr().String()), append(u.files, f)
	}
	return u
}

// begin starts a command line of up with the sockets.
func (u *socketUnit) begin(t *testing.T, args ...string) *running {
	t.Helper()
	cmd, stderr := program(t, args...)
	r := &running{cmd: exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`}, cmd.Args...)...), stderr: stderr}
	r.cmd.Env, r.cmd.ExtraFiles = append(cmd.Env, fmt.Sprintf("LISTEN_FDS=%d", len(u.files))), u.files
	r.cmd.Stdout, r.cmd.Stderr = stderr, stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		r.cmd.Wait()
		if t.Failed() {
			t.Log(stderr)
		}
	})
	return r
}

// end ends a process as systemd does, and waits until it has ended.
func (r *running) end(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("up ends with %v: %s", err, r.stderr)
	}
}

// A socket of systemd takes connections before up runs and between two processes: no call is refused. A server gets neither the
// sockets nor the variables, even one that inherits the environment. A warning names a socket at which nothing listens.
func TestUpSockets(t *testing.T) {
	ports, err := listen.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	odd, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unit := newSocketUnit(t, append([]net.Listener{metrics, odd}, ports...)...)
	at := unit.addresses[2]
	file := filepath.Join(t.TempDir(), "mcp.json")
	stub := stubServer(t, "env")
	stub["patchbay"] = map[string]any{"inheritEnv": true}
	writeConfig(t, file, map[string]any{"stub": stub})
	args := []string{"up", "--http", at, "--metrics", unit.addresses[0], "--config", file}

	early, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	fmt.Fprintf(early, "GET /healthz HTTP/1.0\r\nHost: %s\r\n\r\n", at)
	r := unit.begin(t, args...)
	early.SetDeadline(time.Now().Add(time.Minute))
	if answer, err := io.ReadAll(early); !strings.HasPrefix(string(answer), "HTTP/1.0 200") {
		t.Fatalf("a client that connects before the start gets %q, %v", answer, err)
	}
	r.stderr.await(t, "ctrl-C ends it")
	want := "patchbay: warning: systemd passes a socket at " + unit.addresses[1] + ", where nothing listens: set "
	if got := r.stderr.String(); strings.Count(got, "systemd") != 1 || !strings.Contains(got, want) {
		t.Errorf("it says %q, want %q", got, want)
	}
	if res, err := http.Get("http://" + unit.addresses[0] + "/metrics"); err != nil {
		t.Error(err)
	} else {
		res.Body.Close()
	}

	client := &mcp.Client{Name: "desk", Revisions: []mcp.Revision{mcp.V2026_07_28}, HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	session, err := client.Dial(t.Context(), "http://"+at+"/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		res, err := session.CallTool(t.Context(), "stub_env", map[string]any{"name": name})
		if err != nil || res.IsError || res.Text() != "" {
			t.Errorf("the server has %s=%v, %v", name, res, err)
		}
	}
	var calls atomic.Int64
	var over atomic.Bool
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for !over.Load() {
				if res, err := session.CallTool(t.Context(), "stub_env", map[string]any{"name": testRun}); err != nil || res.Text() != "stub" {
					t.Errorf("a call returns %v, %v", res, err)
				}
				calls.Add(1)
			}
		})
	}
	more := func() {
		t.Helper()
		n := calls.Load()
		until(t, "further calls", func() bool { return calls.Load() >= n+100 || t.Failed() })
	}
	for range 3 {
		more()
		r.end(t)
		time.Sleep(200 * time.Millisecond) // nothing accepts connections
		r = unit.begin(t, args...)
	}
	more()
	over.Store(true)
	callers.Wait()
	r.end(t)
}
