package bench_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// The memory of an idle session in bytes: heap and stacks together, after a collection,
// beyond that of an equally idle handler without a library.
func TestIdleBudgets(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates too: memory budgets hold without it")
	}
	tests := []struct {
		name   string
		stream bool
		budget int64
	}{
		{"session", false, 1500},
		{"session with a stream", true, 8000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if os.Getenv("PATCHBAY_IDLE") == "" {
				alone(t)
				return
			}
			bare := restsAt(t, bareSessions{}, tt.stream)
			ours := restsAt(t, newServer(t, 1), tt.stream)
			t.Logf("%d bytes, %d of them beyond a bare handler", ours, ours-bare)
			if ours-bare > tt.budget {
				t.Errorf("a %s takes %d bytes beyond a bare handler, the budget is %d", tt.name, ours-bare, tt.budget)
			}
		})
	}
}

// alone runs this test in a process of its own: what earlier tests of a process left in memory goes
// in the middle of a measurement.
func alone(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.count=1", "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
	cmd.Env = append(os.Environ(), "PATCHBAY_IDLE=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "beyond a bare handler") {
		t.Errorf("%v\n%s", err, out)
	}
}

// bareSessions answers initialize and holds streams open.
type bareSessions struct{}

func (bareSessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Mcp-Session-Id", "x")
	_, _ = io.WriteString(w, "{}")
}

// restsAt opens sessions and returns the bytes of each.
func restsAt(t *testing.T, h http.Handler, stream bool) int64 {
	const sessions = 400
	srv := httptest.NewServer(h)
	defer srv.Close()
	defer srv.CloseClientConnections()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	open := func() {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"bench","version":"1"}}}`
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", srv.Listener.Addr(), len(body), body)
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("initialize: %v, %v", res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if !stream {
			conn.Close()
			return
		}
		conns = append(conns, conn)
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nMcp-Session-Id: %s\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n", srv.Listener.Addr(), res.Header.Get("Mcp-Session-Id"))
		if res, err = http.ReadResponse(r, nil); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("GET: %v, %v", res, err)
		}
	}
	for range 20 {
		open()
	}
	conns = slices.Grow(conns, sessions)
	before := inUse()
	for range sessions {
		open()
	}
	after := inUse()
	return (after - before) / sessions
}

// inUse returns the bytes in use once they stay the same: what earlier tests have left, and closed
// connections, may take a moment to go.
func inUse() int64 {
	const still = 64 << 10
	last := int64(-still)
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		now := int64(m.HeapAlloc + m.StackInuse)
		if max(now-last, last-now) < still || time.Now().After(deadline) {
			return now
		}
		last = now
	}
}
