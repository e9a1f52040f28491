package main

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Bodies that arrive slowly or not at all are given up on every path, whether the handler reads
// them or not, and other requests do not wait.
func TestSlowBodies(t *testing.T) {
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
					time.Sleep(500 * time.Millisecond) // the attack
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

// A flood of requests for one tool or from one address gets 429 with Retry-After; a client's claims
// about its address are ignored. The gateway is limited like a server.
func TestFloodsOfRequests(t *testing.T) {
	flood := func(addr, header string) (ok int, last outcome) {
		for ok < 50 {
			if last = attack(t, addr, sized(header, strings.Replace(modernBody, `"echo"`, `"`+nameIn(header)+`"`, 1))); last.status != 200 {
				return ok, last
			}
			ok++
		}
		return ok, last
	}
	check := func(name, addr, header string, want int, what string) {
		t.Helper()
		ok, last := flood(addr, header)
		wait, err := strconv.Atoi(last.header.Get("Retry-After"))
		if ok != want || last.status != 429 || err != nil || wait < 1 || wait > 3600 || !strings.Contains(last.body, what) || !strings.Contains(last.body, `"retryAfter":`+strconv.Itoa(wait)) {
			t.Errorf("%s: %d calls, then %d, Retry-After %d, %.300s; want %d, 429 and %q", name, ok, last.status, wait, last.body, want, what)
		}
	}
	addr := startServe(t, "--limit", "tool:echo=3/h", "--limit", "100/s")
	check("tool", addr, modernHeader, 3, `more calls of \"echo\"`)
	stillServes(t, addr)

	addr = startServe(t, "--limit", "address=5/h")
	check("address", addr, modernHeader, 5, "from one address")
	lie := strings.Replace(modernHeader, "Host:", "X-Forwarded-For: 192.0.2.1\r\nHost:", 1)
	check("a lie about the address", addr, lie, 0, "from one address")

	addr = startServe(t, "--limit", "address=5/h", "--limit", "proxy=127.0.0.0/8")
	check("behind a proxy", addr, lie, 5, "from one address")
	check("behind it, another", addr, strings.Replace(lie, "192.0.2.1", "192.0.2.2", 1), 5, "from one address")

	r := startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}}, "--limit", "tool:all_*=2/h")
	check("gateway", addressIn(t, r.url), strings.Replace(modernHeader, "Mcp-Name: echo", "Mcp-Name: all_echo", 1), 2, `more calls of \"all_*\"`)
	stillServes(t, addressIn(t, r.url))
}

// nameIn returns the tool that a header names.
func nameIn(header string) string {
	_, rest, _ := strings.Cut(header, "Mcp-Name: ")
	name, _, _ := strings.Cut(rest, "\r\n")
	return name
}
