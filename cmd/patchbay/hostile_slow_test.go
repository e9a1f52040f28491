package main

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// Bodies that come a byte now and then, or not at all, are given up wherever they are sent to, be
// they read or not, and nobody waits for them meanwhile.
func TestSlowBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a client may, 20 s")
	}
	t.Parallel()
	addr := startServe(t)
	drop := func(old, new string) string {
		s := strings.Replace(goodHeader, old, new, 1)
		if s == goodHeader && old != new {
			t.Fatalf("%q is not in the request", old)
		}
		return strings.ReplaceAll(strings.ReplaceAll(s, "ADDR", addr), "LENGTH", "1000")
	}
	attacks := map[string]string{
		"good so far":        drop("", ""),
		"chunks":             drop("Content-Length: LENGTH", "Transfer-Encoding: chunked") + "1000\r\n",
		"refused type":       drop("application/json\r\n", "text/plain\r\n"),
		"refused Accept":     drop("Accept: application/json, text/event-stream", "Accept: image/png"),
		"foreign host":       drop("Host: ADDR", "Host: evil.example"),
		"somewhere else":     drop("/mcp", "/elsewhere"),
		"body of a GET":      drop("POST /mcp", "GET /mcp"),
		"body of a DELETE":   drop("POST /mcp", "DELETE /mcp"),
		"body of an OPTIONS": drop("POST /mcp", "OPTIONS /mcp"),
		"of no session":      drop("POST /mcp HTTP/1.1\r\n", "POST /mcp HTTP/1.1\r\nMcp-Session-Id: x\r\n"),
	}
	type end struct {
		name, got string
		err       error
	}
	ended := make(chan end)
	n := 0
	for name, head := range attacks {
		for _, drips := range []bool{false, true} {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(60 * time.Second))
			n++
			go func() { // ends with conn
				_, err := io.WriteString(conn, head)
				for drips && err == nil {
					time.Sleep(500 * time.Millisecond) // that is the attack
					_, err = io.WriteString(conn, " ")
				}
			}()
			go func() {
				got, err := io.ReadAll(conn)
				ended <- end{name, string(got), err}
			}()
		}
	}
	stillServes(t, addr)
	for range n {
		e := <-ended
		if errors.Is(e.err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection was kept for 60 s; %.100q came", e.name, e.got)
		}
		if (e.name == "good so far" || e.name == "chunks") && !strings.Contains(e.got, "408 Request Timeout") {
			t.Errorf("%s: answered %.200q, want 408", e.name, e.got)
		}
	}
	stillServes(t, addr)
}
