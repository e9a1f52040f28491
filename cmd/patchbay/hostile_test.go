package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// These tests write requests to sockets byte by byte, unlike a well-behaved client.
// docs/security.md has the table of these attacks.

// A valid request. An attack replaces parts of it; ADDR stands for the address of the server and
// LENGTH for the length of the body.
const (
	goodHeader = "POST /mcp HTTP/1.1\r\nHost: ADDR\r\nContent-Type: application/json\r\n" +
		"Accept: application/json, text/event-stream\r\nContent-Length: LENGTH\r\n\r\n"
	goodBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

	modernHeader = "POST /mcp HTTP/1.1\r\nHost: ADDR\r\nContent-Type: application/json\r\n" +
		"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n" +
		"Mcp-Name: echo\r\nContent-Length: LENGTH\r\n\r\n"
	modernBody = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`
)

// startServe starts "serve everything" over HTTP, with more flags, and returns its address.
func startServe(t *testing.T, more ...string) string {
	t.Helper()
	cmd, stderr := program(t, append([]string{"serve", "everything", "--http", "127.0.0.1:0"}, more...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	stderr.await(t, `listening on http://\S+/mcp`)
	return addressIn(t, stderr.String())
}

// program returns a command of this program; the transcript collects its standard error.
func program(t *testing.T, args ...string) (*exec.Cmd, *transcript) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, stderr := exec.Command(self, args...), new(transcript)
	cmd.Env = append(os.Environ(), testRun+"=patchbay")
	cmd.Stderr = stderr
	return cmd, stderr
}

func addressIn(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`).FindString(text))
	if err != nil || u.Host == "" {
		t.Fatalf("no address in %q", text)
	}
	return u.Host
}

// outcome is the response to the bytes of one attack.
type outcome struct {
	status int // of the first response; 0: none
	header http.Header
	body   string
	closed bool // the server closed the connection after it
}

// attack sends bytes over a new connection. It waits for the end of the connection only if the
// first response announces it.
func attack(t *testing.T, addr, bytes string) outcome {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	go io.WriteString(conn, strings.ReplaceAll(bytes, "ADDR", addr)) // ends with conn at the latest
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return outcome{closed: !errors.Is(err, os.ErrDeadlineExceeded)}
	}
	body, _ := io.ReadAll(res.Body)
	a := outcome{status: res.StatusCode, header: res.Header, body: string(body)}
	if res.Close {
		more, err := io.ReadAll(r)
		a.closed = len(more) == 0 && !errors.Is(err, os.ErrDeadlineExceeded)
	}
	return a
}

// sized inserts the length of a body into a header.
func sized(header, body string) string {
	return strings.ReplaceAll(header, "LENGTH", strconv.Itoa(len(body))) + body
}

// bothEnds runs a test against the processes of serve and up.
func bothEnds(t *testing.T, test func(t *testing.T, addr string)) {
	t.Run("serve", func(t *testing.T) { test(t, startServe(t)) })
	t.Run("up", func(t *testing.T) {
		r := startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}})
		test(t, addressIn(t, r.url))
	})
}

// stillServes checks that the server still answers.
func stillServes(t *testing.T, addr string) {
	t.Helper()
	if a := attack(t, addr, sized(goodHeader, goodBody)); a.status != 200 || !strings.Contains(a.body, `"protocolVersion":"2025-11-25"`) {
		t.Errorf("a good request = %d %.300s", a.status, a.body)
	}
}

// TestHostileHTTP: HTTP-26-002, HTTP-26-003, SHTTP-25-002, SHTTP-25-003, Q-23.
func TestHostileHTTP(t *testing.T) {
	const (
		host = "Host: ADDR\r\n"
		kind = "Content-Type: application/json\r\n"
		size = "Content-Length: LENGTH\r\n"
		last = "\r\n\r\n" // where another header can be inserted
	)
	with := func(header string) string { return "\r\n" + header + last }
	tests := []struct {
		name, old, new string // in the header of a valid request
		status         int
		closed         bool // the connection must end with the response
	}{
		{"nothing is wrong", "", "", 200, false},

		// Host, as under DNS rebinding.
		{"no Host", host, "", 400, true},
		{"no Host, HTTP/1.0", "HTTP/1.1\r\n" + host, "HTTP/1.0\r\n", 403, true},
		{"empty Host", host, "Host: \r\n", 403, false},
		{"two Hosts", host, host + "Host: evil.example\r\n", 400, true},
		{"two Hosts, the good one last", host, "Host: evil.example\r\n" + host, 400, true},
		{"foreign Host", host, "Host: evil.example\r\n", 403, false},
		{"foreign Host with our port", host, "Host: evil.example:7420\r\n", 403, false},
		{"begins like ours", host, "Host: 127.0.0.1.evil.example\r\n", 403, false},
		{"ends like ours", host, "Host: evil.localhost\r\n", 403, false},
		{"user in Host", host, "Host: localhost@evil.example\r\n", 400, true},
		{"fragment in Host", host, "Host: evil.example#localhost\r\n", 400, true},
		{"list in Host", host, "Host: localhost,evil.example\r\n", 403, false},
		{"escaped NUL in Host", host, "Host: 127.0.0.1%00.evil.example\r\n", 403, false},
		{"short address", host, "Host: 127.1\r\n", 403, false},
		{"address as a number", host, "Host: 2130706433\r\n", 403, false},
		{"every address", host, "Host: 0.0.0.0\r\n", 403, false},
		{"target names another host", "POST /mcp", "POST http://evil.example/mcp", 403, false},

		// Origin, as every page sends it.
		{"own Origin", last, with("Origin: http://ADDR"), 200, false},
		{"foreign Origin", last, with("Origin: http://evil.example"), 403, false},
		{"other port", last, with("Origin: http://127.0.0.1:1"), 403, false},
		{"null Origin", last, with("Origin: null"), 403, false},
		{"empty Origin", last, with("Origin:"), 403, false},
		{"Origin of a file", last, with("Origin: file://"), 403, false},
		{"Origin of another scheme", last, with("Origin: ftp://ADDR"), 403, false},
		{"Origin of an extension", last, with("Origin: chrome-extension://ADDR"), 403, false},
		{"begins like our Origin", last, with("Origin: http://ADDR.evil.example"), 403, false},
		{"our Origin as user", last, with("Origin: http://ADDR@evil.example"), 403, false},
		{"our Origin as path", last, with("Origin: http://evil.example/ADDR"), 403, false},
		{"two Origins", last, with("Origin: http://ADDR\r\nOrigin: http://evil.example"), 403, false},
		{"preflight of a foreign page", last, with("Origin: http://evil.example\r\nAccess-Control-Request-Method: POST"), 403, false},

		// Requests that a page can send without a preflight.
		{"text", kind, "Content-Type: text/plain\r\n", 415, false},
		{"form", kind, "Content-Type: application/x-www-form-urlencoded\r\n", 415, false},
		{"form with files", kind, "Content-Type: multipart/form-data; boundary=x\r\n", 415, false},
		{"text that pretends", kind, "Content-Type: text/plain; application/json\r\n", 415, false},
		{"list of types", kind, "Content-Type: application/json, text/plain\r\n", 415, false},
		{"two types", kind, kind + "Content-Type: text/plain\r\n", 415, false},
		{"no type", kind, "", 415, false},
		{"GET that wants to be a POST", "POST /mcp", "GET /mcp?_method=POST", 405, false},
		{"GET with an override", "POST /mcp HTTP/1.1\r\n", "GET /mcp HTTP/1.1\r\nX-HTTP-Method-Override: POST\r\n", 405, false},
		{"TRACE", "POST /mcp", "TRACE /mcp", 405, false},
		{"CONNECT", "POST /mcp", "CONNECT evil.example:443", 404, false},

		// Characters that end a line, or may.
		{"NUL in a value", last, with("X-A: a\x00b"), 400, true},
		{"CR in a value", last, with("X-A: a\rb"), 400, true},
		{"control character in a session id", last, with("Mcp-Session-Id: a\x01b"), 400, true},
		{"space before a colon", last, with("Transfer-Encoding : chunked"), 400, true},
		{"name with a NUL", last, with("X\x00A: b"), 400, true},

		// Requests that two servers in a row may split differently.
		{"two lengths", last, with("Content-Length: 5"), 400, true},
		{"list of lengths", size, "Content-Length: 5, 6\r\n", 400, true},
		{"length with a sign", size, "Content-Length: +LENGTH\r\n", 400, true},
		{"negative length", size, "Content-Length: -1\r\n", 400, true},
		{"length beyond numbers", size, "Content-Length: 99999999999999999999999\r\n", 400, true},
		{"unknown encoding", size, "Transfer-Encoding: xchunked\r\n", 501, true},
		{"chunked is not last", size, "Transfer-Encoding: chunked, identity\r\n", 501, true},
		{"two encodings", size, "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 501, true},
		{"no chunk", size, "Transfer-Encoding: chunked\r\n", 400, true},
		{"length and chunks", last, with("Transfer-Encoding: chunked"), 400, true},
		{"start of HTTP/2", "POST /mcp HTTP/1.1", "PRI * HTTP/2.0", 400, true},

		// Over the limits.
		{"length over the limit", size, "Content-Length: 99999999999\r\n", 413, true},
		{"long header", last, with("X-A: " + strings.Repeat("a", 256<<10)), 431, true},
		{"many headers", last, with(strings.TrimSuffix(strings.Repeat("X-A: a\r\n", 32<<10), "\r\n")), 431, true},
		{"long target", "POST /mcp", "POST /mcp?" + strings.Repeat("a", 256<<10), 431, true},
		{"compressed", last, with("Content-Encoding: gzip"), 415, false},
		{"unknown expectation", last, with("Expect: evil"), 417, true},
	}
	bothEnds(t, func(t *testing.T, addr string) {
		for _, tt := range tests {
			header := strings.Replace(goodHeader, tt.old, tt.new, 1)
			if header == goodHeader && tt.old != tt.new {
				t.Fatalf("%s: %q is not in the request", tt.name, tt.old)
			}
			a := attack(t, addr, sized(header, goodBody+"\r\n")) // also ends the line of a chunk's length
			if a.status != tt.status || tt.closed && !a.closed {
				t.Errorf("%s = %d, closed %v, want %d, closed %v; the body is %.300q", tt.name, a.status, a.closed, tt.status, tt.closed, a.body)
			}
			if got := a.header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("%s: pages of %q may read the answer", tt.name, got)
			}
		}
		stillServes(t, addr)
	})
}

// A second request inside what a proxy considers the body of the first is not served.
func TestSmuggledRequest(t *testing.T) {
	bothEnds(t, func(t *testing.T, addr string) {
		hidden := sized(goodHeader, goodBody)
		for _, chunks := range []string{"0\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(goodBody), goodBody)} {
			body := chunks + hidden
			header := strings.Replace(goodHeader, "\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n", 1)
			if a := attack(t, addr, sized(header, body)); !a.closed {
				t.Errorf("chunks %q and a length = %d, and the connection goes on", chunks, a.status)
			}
		}
	})
}

// TestHostileMessages: HTTP-26-037, JSON-26-012, BASE-26-001.
func TestHostileMessages(t *testing.T) {
	body := func(old, new string) string { return strings.Replace(modernBody, old, new, 1) }
	tests := []struct {
		name, header, body string // of a modern request; "": a valid one
		status             int
		want               string // in the response
	}{
		{"nothing is wrong", "", modernBody, 200, `"hi"`},

		// Bodies that parsers read differently.
		{"member twice", "", body(`"method":`, `"method":"tools/list","method":`), 400, "same name"},
		{"member twice, once escaped", "", body(`"method":`, `"\u006dethod":"tools/list","method":`), 400, "same name"},
		{"argument twice", "", body(`"message":"hi"`, `"message":"hi","message":"ho"`), 400, "same name"},
		{"case of a member", "", body(`"method":`, `"Method":`), 400, "must be written"},
		{"NUL in the method", "", body(`"tools/call"`, `"tools/call\u0000"`), 400, "-32020"},
		{"NUL in the name", "", body(`"name":"echo"`, `"name":"echo\u0000"`), 400, "-32020"},
		{"half a surrogate", "", body(`"hi"`, `"\ud800"`), 400, "surrogate"},
		{"no UTF-8", "", body(`"hi"`, "\"\xff\""), 400, "UTF-8"},
		{"byte order mark", "", "\ufeff" + modernBody, 400, "-32700"},
		{"two values", "", modernBody + modernBody, 400, "after the value"},
		{"comment", "", body(`{`, `{/**/`), 400, "-32700"},
		{"number that is none", "", body(`"id":1`, `"id":NaN`), 400, "-32700"},
		{"control character", "", body(`"hi"`, "\"a\nb\""), 400, "-32700"},
		{"__proto__ is data", "", body(`"message":"hi"`, `"message":"hi","__proto__":{"message":"ho"}`), 200, "__proto__"},

		// Over the limits.
		{"deep", "", body(`"hi"`, strings.Repeat(`[`, 100_000)), 400, "nested deeper than 128"},
		{"huge id", "", body(`"id":1`, `"id":1e400`), 400, "-32600"},
		{"huge number", "", body(`"hi"`, `1e999999999`), 200, "isError"},
		{"long number", "", body(`"hi"`, strings.Repeat("9", 1<<20)), 200, "isError"},
		{"many members", "", body(`"message"`, `"message":"hi",`+manyMembers(100_000)+`"x"`), 200, "message"},

		// Headers that contradict the message.
		{"other name", "Mcp-Name: evil", modernBody, 400, "-32020"},
		{"two names", "Mcp-Name: echo\r\nMcp-Name: evil", modernBody, 400, "-32020"},
		{"two names, the good one last", "Mcp-Name: evil\r\nMcp-Name: echo", modernBody, 400, "-32020"},
		{"line break in the name", "Mcp-Name: =?base64?ZQ0KWC1FdmlsOiAx?=", body(`"name":"echo"`, `"name":"e\r\nX-Evil: 1"`), 200, "-32602"},
	}
	addr := startServe(t)
	for _, tt := range tests {
		header := modernHeader
		if tt.header != "" {
			header = strings.Replace(header, "Mcp-Name: echo", tt.header, 1)
		}
		start := time.Now()
		a := attack(t, addr, sized(header, tt.body))
		if a.status != tt.status || !strings.Contains(a.body, tt.want) {
			t.Errorf("%s = %d %.400q, want %d with %q", tt.name, a.status, a.body, tt.status, tt.want)
		}
		if a.header.Get("X-Evil") != "" {
			t.Errorf("%s: the message made a header", tt.name)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %v", tt.name, took)
		}
	}
	stillServes(t, addr)
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"m%d":1,`, i)
	}
	return b.String()
}

// A compressed body that expands to gigabytes is not decompressed.
func TestDecompressionBomb(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	w.Write(bytes.Repeat([]byte(" "), 64<<20))
	w.Close()
	addr := startServe(t)
	for _, encoding := range []string{"", "Content-Encoding: gzip\r\n"} {
		header := strings.Replace(goodHeader, "Content-Length:", encoding+"Content-Length:", 1)
		if a := attack(t, addr, sized(header, bomb.String())); a.status/100 != 4 {
			t.Errorf("%d bytes with %q = %d %.300s", bomb.Len(), encoding, a.status, a.body)
		}
	}
	stillServes(t, addr)
}

// A body without an end is read up to the limit, and the connection ends.
func TestEndlessRequest(t *testing.T) {
	bothEnds(t, func(t *testing.T, addr string) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(30 * time.Second))
		status := make(chan int, 1)
		go func() { // ends with conn
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				status <- 0
				return
			}
			status <- res.StatusCode
		}()
		header := strings.Replace(goodHeader, "Content-Length: LENGTH", "Transfer-Encoding: chunked", 1)
		io.WriteString(conn, strings.ReplaceAll(header, "ADDR", addr))
		chunk := "10000\r\n" + strings.Repeat(" ", 64<<10) + "\r\n"
		sent := 0
		for err == nil && sent < 1<<30 {
			var n int
			n, err = io.WriteString(conn, chunk)
			sent += n
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) || sent > 64<<20 {
			t.Errorf("%d bytes were taken, until %v", sent, err)
		}
		if got := <-status; got != 413 && got != 0 { // the end of the connection may come before the response
			t.Errorf("status %d, want 413", got)
		}
		stillServes(t, addr)
	})
}

// Clients that send their headers slowly are disconnected, and others do not wait meanwhile.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	addr := startServe(t)
	const many = 200
	ended := make(chan error, many)
	for range many {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(40 * time.Second))
		go func() { // ends with conn
			for {
				if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nX-A: "); err != nil {
					break
				}
				time.Sleep(500 * time.Millisecond) // the attack
			}
		}()
		go func() {
			_, err := io.ReadAll(conn)
			ended <- err
		}()
	}
	stillServes(t, addr)
	for range many {
		if err := <-ended; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a connection without a request was kept for 40 s")
		}
	}
	stillServes(t, addr)
}

// Without an explicit flag, the program does not serve where others could reach it (HTTP-26-004,
// SHTTP-25-004, SEC-26-015).
func TestRefusesToBeReachable(t *testing.T) {
	for _, args := range [][]string{
		{"serve", "everything", "--http", "0.0.0.0:0"},
		{"serve", "everything", "--http", ":0"},
		{"serve", "everything", "--http", "[::]:0"},
		{"up", "--http", "0.0.0.0:0", "-s", "everything"},
	} {
		cmd, stderr := program(t, args...)
		late := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
		cmd.Run()
		late.Stop()
		if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(stderr.String(), "--insecure-no-auth") {
			t.Errorf("%q exited with %d and said %q, want %d and the flag that allows it", args, code, stderr, exitUsage)
		}
	}
}
