package listen

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// childOf is set for a test that is the child of another.
const childOf = "PATCHBAY_TEST_SOCKETS"

// with runs a test again in a process that gets files as systemd passes sockets.
func with(t *testing.T, value any, files ...*os.File) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), childOf+"="+string(text), fmt.Sprintf("LISTEN_FDS=%d", len(files)), "LISTEN_FDNAMES=a")
	cmd.ExtraFiles = files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// child returns whether this process is the child, with what it has been told.
func child(t *testing.T, value any) bool {
	t.Helper()
	text := os.Getenv(childOf)
	if text == "" {
		return false
	}
	if err := json.Unmarshal([]byte(text), value); err != nil {
		t.Fatal(err)
	}
	return true
}

// file returns the descriptor of a socket, as systemd has it.
func file(t *testing.T, s any) *os.File {
	t.Helper()
	f, err := s.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	s.(io.Closer).Close()
	t.Cleanup(func() { f.Close() })
	return f
}

// anyPort listens at a free port of an address.
func anyPort(t *testing.T, host string) (l net.Listener, port string) {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return l, port
}

// noted returns an endpoint whose notes are appended to lines.
func noted(l net.Listener, lines *[]string) *Endpoint {
	return New(&mcp.Server{Name: "x", Version: "1"}, l, Options{Log: slog.New(slog.DiscardHandler), Note: func(format string, args ...any) { *lines = append(*lines, fmt.Sprintf(format, args...)) }})
}

// Open returns the socket that listens at its address, once. Programs that are started get neither sockets nor variables.
func TestOpen(t *testing.T) {
	var told struct{ Own, All, Elsewhere string } // ports
	if !child(t, &told) {
		var own, all, elsewhere net.Listener
		own, told.Own = anyPort(t, "127.0.0.1")
		all, told.All = anyPort(t, "")
		elsewhere, told.Elsewhere = anyPort(t, "")
		with(t, told, file(t, own), file(t, all), file(t, elsewhere))
		return
	}
	environment, err := exec.Command("env").Output()
	if err != nil || strings.Contains(string(environment), "LISTEN_") {
		t.Errorf("the environment of a program is %s, %v", environment, err)
	}
	descriptors, err := exec.Command("sh", "-c", "ls -l /proc/self/fd/").Output()
	if err != nil || strings.Contains(string(descriptors), "socket:") {
		t.Errorf("the descriptors of a program are\n%s%v", descriptors, err)
	}
	for _, tt := range []struct {
		address string
		passed  bool
		fault   string
	}{
		{"127.0.0.1:0", false, ""},
		{"127.0.0.2:" + told.Own, false, ""},
		{"localhost:" + told.Own, true, ""},
		{"127.0.0.1:" + told.Own, false, "in use"}, // it is taken
		{"127.0.0.1:" + told.Elsewhere, false, "systemd passes a socket at [::]:" + told.Elsewhere + ": set --http (listen.http of gateway.yaml) or ListenStream="},
		{"0.0.0.0:" + told.All, true, ""},
		{":" + told.Elsewhere, true, ""},
	} {
		l, err := Open(tt.address)
		if tt.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("Open(%s) = %v, want %s", tt.address, err, tt.fault)
			}
			continue
		}
		if err != nil {
			t.Errorf("Open(%s) = %v", tt.address, err)
			continue
		}
		defer l.Close()
		if _, passed := l.(*socket); passed != tt.passed {
			t.Errorf("Open(%s) = %v, of systemd: %v, want %v", tt.address, l.Addr(), passed, tt.passed)
		}
	}
	if lines := unused(); len(lines) != 0 {
		t.Errorf("unused sockets: %q", lines)
	}
}

// Serve closes what nothing has taken, and what does not listen, and says so. It closes them in this process alone.
func TestUnused(t *testing.T) {
	var told []string // what the lines have
	if !child(t, &told) {
		dir := t.TempDir()
		tcp, _ := anyPort(t, "127.0.0.1")
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		unix, err := net.Listen("unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		connected, err := net.Dial("tcp", tcp.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		plain, err := os.Create(filepath.Join(dir, "plain"))
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		told = []string{
			"a socket at " + tcp.Addr().String() + ", where nothing listens", "udp " + udp.LocalAddr().String() + ", which", "unix " + unix.Addr().String() + ", which",
			"tcp " + connected.LocalAddr().String() + ", which", "LISTEN_FD_7, which",
		}
		f := file(t, tcp)
		with(t, told, f, file(t, udp), file(t, unix), file(t, connected), plain)
		if c, err := net.Dial("tcp", tcp.Addr().String()); err != nil {
			t.Errorf("the socket does not listen any more: %v", err)
		} else {
			c.Close()
		}
		return
	}
	l, err := Open("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	e := noted(l, &lines)
	e.Serve()
	defer e.End(t.Context(), 0)
	if len(lines) != len(told) {
		t.Fatalf("the lines are %q", lines)
	}
	for i, want := range told {
		if !strings.HasPrefix(lines[i], "warning: systemd passes "+want) || !strings.Contains(lines[i], "ListenStream=") {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(fds) < 3 {
		t.Fatalf("the descriptors are %q, %v", fds, err)
	}
	for _, fd := range fds {
		if path, err := os.Readlink(fd); err == nil && strings.HasSuffix(path, "/plain") { // others come and go meanwhile
			t.Errorf("descriptor %s is %s", fd, path)
		}
	}
}

// The other address of loopback may be a socket of systemd as well. When an endpoint ends, connections wait at both.
func TestSocketsOfEndpoint(t *testing.T) {
	var told []string // addresses
	if !child(t, &told) {
		ports, err := Loopback()
		if err != nil {
			t.Fatal(err)
		}
		if len(ports) < 2 {
			t.Skip("there is no IPv6")
		}
		var files []*os.File
		for _, l := range ports {
			told = append(told, l.Addr().String())
			files = append(files, file(t, l))
		}
		with(t, told, files...)
		return
	}
	l, err := Open(told[0])
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	e := noted(l, &lines)
	if _, why := e.Sandbox(); why != "" {
		t.Error(why)
	}
	e.Serve()
	for _, at := range told {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprint(c, "GET /other HTTP/1.0\r\n\r\n")
		if answer, err := io.ReadAll(c); !strings.HasPrefix(string(answer), "HTTP/1.0 404") {
			t.Errorf("%s answers %q, %v", at, answer, err)
		}
	}
	e.End(t.Context(), 0)
	if len(lines) > 0 {
		t.Errorf("notes: %q", lines)
	}
	for _, at := range told {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Errorf("a connection is refused: %v", err)
			continue
		}
		c.SetDeadline(time.Now().Add(200 * time.Millisecond))
		if n, err := c.Read(make([]byte, 1)); n > 0 || !os.IsTimeout(err) {
			t.Errorf("%s: a connection does not wait: %v", at, err)
		}
		c.Close()
	}
}
