package listen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A handler in front sees what clients of MCP send, and nothing else. Its event streams end with the endpoint.
func TestInFront(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := New(&mcp.Server{Name: "s"}, l, Options{Log: slog.New(slog.DiscardHandler)})
	e.Mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ready") })
	e.InFront(func(here http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Session-Id") == "" {
				here.ServeHTTP(w, r)
				return
			}
			io.WriteString(w, "elsewhere")
			if r.Method == http.MethodGet {
				http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		})
	})
	served := e.Serve()
	ask := func(method, path, session string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(e.URL, Path)+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Session-Id", session)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for _, tt := range []struct{ method, path, session, want string }{
		{"POST", "/mcp", "x", "elsewhere"}, {"POST", "/mcp/v/a", "x", "elsewhere"}, {"GET", "/readyz", "x", "ready"}, {"POST", "/mcpx", "x", "the MCP endpoint is at /mcp\n"},
	} {
		res := ask(tt.method, tt.path, tt.session)
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.Close {
			t.Errorf("%s %s ends its connection", tt.method, tt.path)
		}
		if string(body) != tt.want {
			t.Errorf("%s %s = %q, want %q", tt.method, tt.path, body, tt.want)
		}
	}
	if res := ask("POST", "/mcp", ""); res.StatusCode/100 != 4 {
		t.Errorf("an empty message to the server itself: HTTP %d", res.StatusCode)
	} else {
		res.Body.Close()
	}
	stream := ask("GET", "/mcp", "x")
	defer stream.Body.Close()
	if !stream.Close {
		t.Error("the connection of a stream may be used again, while the endpoint ends")
	}
	ended := make(chan error, 1)
	go func() { ended <- e.End(t.Context(), time.Hour) }()
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("End = %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the endpoint waits for a stream")
	}
	<-served
}

// While a node ends, a client whose call is answered with a stream sends its next request over the same connection, and it is served.
// One without a request is closed, and all are when the calls have ended.
func TestFollowsCall(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := New(&mcp.Server{Name: "s"}, l, Options{Log: slog.New(slog.DiscardHandler)})
	over := make(chan bool)
	e.InFront(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.Header.Get("Mcp-Session-Id") {
			case "idle":
				io.WriteString(w, "served")
				return
			case "next":
				w.Header().Set("Connection", "close")
				io.WriteString(w, "served")
				return
			}
			io.WriteString(w, "begun, ")
			http.NewResponseController(w).Flush()
			<-over
			io.WriteString(w, "and over")
		})
	})
	waits := make(chan bool, 1) // a connection has no request any more, which its client may know before
	e.http.ConnState = func(_ net.Conn, now http.ConnState) {
		if now == http.StateIdle {
			select {
			case waits <- true:
			default:
			}
		}
	}
	served := e.Serve()
	dial := func() (net.Conn, *bufio.Reader) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(time.Minute))
		return c, bufio.NewReader(c)
	}
	send := func(c net.Conn, session string) {
		t.Helper()
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\nMcp-Session-Id: %s\r\n\r\n", Path, l.Addr(), session); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(in *bufio.Reader) string {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return err.Error()
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err.Error()
		}
		return string(body)
	}
	idle, idleIn := dial()
	send(idle, "idle")
	if said := answer(idleIn); said != "served" {
		t.Fatal(said)
	}
	<-waits
	call, in := dial()
	send(call, "stream")
	if _, err := in.Peek(1); err != nil { // the stream has begun
		t.Fatal(err)
	}
	e.Close()
	close(over)
	if said := answer(in); said != "begun, and over" {
		t.Fatal(said)
	}
	send(call, "next")
	if said := answer(in); said != "served" {
		t.Errorf("the request after a call: %s", said)
	}
	for what, in := range map[string]*bufio.Reader{"after that": in, "without a request": idleIn} {
		if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("a connection %s: %v", what, err)
		}
	}
	if err := e.End(t.Context(), 0); err != nil {
		t.Error(err)
	}
	<-served
}
