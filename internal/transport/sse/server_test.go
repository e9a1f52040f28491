package sse_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/transport/sse"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// echo sends every frame back.
func echo(ctx context.Context, conn jsonrpc.Conn, _ string) error {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for {
		frame, err := conn.Read(nil)
		if err != nil {
			return err
		}
		if err := conn.Write(frame); err != nil {
			return err
		}
	}
}

func newServer() *sse.Server {
	return &sse.Server{Serve: echo, MessagePath: "/messages", MaxBody: 1 << 20, MaxStreams: 2000, Logger: slog.New(slog.DiscardHandler)}
}

func start(t testing.TB, s *sse.Server) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/sse", s)
	mux.Handle("/messages", s)
	mux.Handle("/prefix/", http.StripPrefix("/prefix", mux))
	hs := httptest.NewServer(mux)
	t.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
	return hs
}

// TestStream runs a session by hand (SSE-24-004 to -007).
func TestStream(t *testing.T) {
	s := newServer()
	s.KeepAlive = 20 * time.Millisecond
	hs := start(t, s)
	for _, path := range []string{"/sse", "/prefix/sse"} {
		res, err := http.Get(hs.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		lines := bufio.NewScanner(res.Body)
		next := func() string {
			if !lines.Scan() {
				t.Fatalf("the stream ended: %v", lines.Err())
			}
			return lines.Text()
		}
		if got := next(); got != "event: endpoint" { // SSE-24-005
			t.Fatalf("first line is %q", got)
		}
		data, ok := strings.CutPrefix(next(), "data: ")
		if !ok || !strings.HasPrefix(data, "messages?sessionId=") || len(data) < len("messages?sessionId=")+26 {
			t.Fatalf("endpoint is %q", data)
		}
		next()
		base, _ := url.Parse(hs.URL + path)
		to, err := base.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		post, err := http.Post(to.String(), "application/json; charset=utf-8", strings.NewReader("{\r\n\"a\":1}"))
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(post.Body); post.StatusCode != http.StatusAccepted || len(body) > 0 {
			t.Errorf("POST = %d %q, want 202 and nothing", post.StatusCode, body)
		}
		post.Body.Close()
		got := ""
		for !strings.HasSuffix(got, "\n\n") {
			if line := next(); got != "" || !strings.HasPrefix(line, ":") && line != "" {
				got += line + "\n"
			}
		}
		if got != "event: message\ndata: {\"a\":1}\n\n" { // SSE-24-007
			t.Errorf("message is %q", got)
		}
		for next() != ":" { // a comment comes by itself
		}
		res.Body.Close()
	}
}

// post sends a message to a session and returns the status.
func post(t testing.TB, target, body string, header ...string) int {
	t.Helper()
	r, err := http.NewRequest("POST", target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	return res.StatusCode
}

// openStream opens a stream and returns its endpoint.
func openStream(t testing.TB, hs *httptest.Server, header ...string) (endpoint string, stream io.Closer) {
	t.Helper()
	r, err := http.NewRequest("GET", hs.URL+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	name, data, err := web.NewEventReader(res.Body, 1000).Next()
	if err != nil || name != "endpoint" {
		t.Fatalf("GET = %d, first event %q %q, %v", res.StatusCode, name, data, err)
	}
	return hs.URL + "/" + string(data), res.Body
}

// Trap 8: one principal has at most a quarter of the streams.
func TestOnePrincipalDoesNotTakeAllStreams(t *testing.T) {
	s := newServer()
	s.Principal = func(r *http.Request) string { return r.Header.Get("X-User") }
	s.MaxStreams = 8
	hs := start(t, s)
	for _, user := range []string{"eve", "eve", "ada", "ada"} {
		_, stream := openStream(t, hs, "X-User", user)
		defer stream.Close()
	}
	r, err := http.NewRequest("GET", hs.URL+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User", "eve")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "a quarter of the 8") {
		t.Errorf("a third stream = %d, Retry-After %q, %s", res.StatusCode, res.Header.Get("Retry-After"), body)
	}
	_, stream := openStream(t, hs, "X-User", "bob")
	stream.Close()
}

// TestRefusals: SSE-24-001, Q-23, and the answers of a session to other principals.
func TestRefusals(t *testing.T) {
	s := newServer()
	s.Principal = func(r *http.Request) string { return r.Header.Get("X-User") }
	s.MaxStreams = 1
	hs := start(t, s)
	endpoint, stream := openStream(t, hs, "X-User", "ada")
	defer stream.Close()
	mine := []string{"X-User", "ada"}
	for _, tt := range []struct {
		name, method, target, body string
		header                     []string
		status                     int
	}{
		{"message", "POST", endpoint, `{}`, mine, 202},
		{"garbage is answered on the stream", "POST", endpoint, `{`, mine, 202},
		{"another principal", "POST", endpoint, `{}`, []string{"X-User", "eve"}, 404},
		{"nobody", "POST", endpoint, `{}`, nil, 404},
		{"unknown session", "POST", hs.URL + "/messages?sessionId=x", `{}`, mine, 404},
		{"no session", "POST", hs.URL + "/messages", `{}`, mine, 400},
		{"initialize posted to the stream", "POST", hs.URL + "/sse", `{}`, mine, 400}, // HTTP-26-077
		{"page of elsewhere", "POST", endpoint, `{}`, append(mine, "Origin", "https://evil.example.com"), 403},
		{"page of elsewhere opens", "GET", hs.URL + "/sse", ``, append(mine, "Origin", "https://evil.example.com"), 403},
		{"rebound name", "GET", hs.URL + "/sse", ``, append(mine, "Host", "evil.example.com"), 403},
		{"form", "POST", endpoint, `{}`, append(mine, "Content-Type", "text/plain"), 415},
		{"too large", "POST", endpoint, strings.Repeat("x", 1<<20+1), mine, 413},
		{"no events", "GET", hs.URL + "/sse", ``, append(mine, "Accept", "application/json"), 406},
		{"one stream too many", "GET", hs.URL + "/sse", ``, mine, 503},
		{"other verb", "PUT", hs.URL + "/sse", ``, mine, 405},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequest(tt.method, tt.target, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if tt.method == "POST" {
				r.Header.Set("Content-Type", "application/json")
			}
			for i := 0; i < len(tt.header); i += 2 {
				r.Header.Set(tt.header[i], tt.header[i+1])
			}
			r.Host = r.Header.Get("Host")
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != tt.status {
				body, _ := io.ReadAll(res.Body)
				t.Errorf("%s = %d %s, want %d", tt.method, res.StatusCode, body, tt.status)
			}
		})
	}
}

// A closed Drain refuses new streams; open ones go on until Serve ends them.
func TestDrain(t *testing.T) {
	s := newServer()
	drain := make(chan struct{})
	s.Drain = drain
	hs := start(t, s)
	endpoint, stream := openStream(t, hs)
	defer stream.Close()
	close(drain)
	res, err := http.Get(hs.URL + "/sse")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("GET = %d, Retry-After %q, want 503", res.StatusCode, res.Header.Get("Retry-After"))
	}
	if got := post(t, endpoint, `{}`); got != 202 {
		t.Errorf("POST = %d, want 202", got)
	}
}

// A place is free again when its stream has ended, and pending POSTs to the stream return.
func TestEndOfStream(t *testing.T) {
	s := newServer()
	ended := make(chan error, 1)
	s.Serve = func(ctx context.Context, conn jsonrpc.Conn, p string) error {
		<-ctx.Done() // reads no message
		conn.Close()
		ended <- ctx.Err()
		return nil
	}
	hs := start(t, s)
	endpoint, stream := openStream(t, hs)
	status := make(chan int)
	go func() { status <- post(t, endpoint, `{}`) }()
	stream.Close()
	<-ended
	if got := <-status; got != 404 {
		t.Errorf("POST = %d, want 404: the session has ended", got)
	}
}

// An http.Server.ReadTimeout and WriteTimeout do not end a stream.
func TestServerTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a machine with other work would exceed such times
		l := &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
		hs := &http.Server{Handler: newServer(), ReadTimeout: 50 * time.Millisecond, WriteTimeout: 50 * time.Millisecond}
		go hs.Serve(l)
		wire := &http.Transport{DialContext: l.dial}
		t.Cleanup(func() { wire.CloseIdleConnections(); hs.Close() })
		conn, err := sse.Dial(t.Context(), sse.ClientOptions{URL: "http://127.0.0.1/", HTTP: &http.Client{Transport: wire}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		time.Sleep(200 * time.Millisecond)
		if err := conn.Write([]byte(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
		if frame, err := conn.Read(nil); string(frame) != `{"a":1}` || err != nil {
			t.Errorf("Read = %s, %v", frame, err)
		}
	})
}

// memory is a listener for connections in memory.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func (l *memory) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memory) Close() error   { l.close.Do(func() { close(l.closed) }); return nil }
func (l *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (l *memory) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	l.conns <- far
	return near, nil
}

// A thousand clients whose connections are reset leave no goroutines behind, which TestMain
// checks.
func TestAbruptDisconnects(t *testing.T) {
	mcptest.LeakCheck(t)
	s := newServer()
	var open sync.WaitGroup
	s.Serve = func(ctx context.Context, conn jsonrpc.Conn, p string) error {
		defer open.Done()
		return echo(ctx, conn, p)
	}
	hs := start(t, s)
	for range 20 {
		var all sync.WaitGroup
		for range 50 {
			open.Add(1)
			all.Go(func() {
				c, err := net.Dial("tcp", hs.Listener.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				fmt.Fprintf(c, "GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n")
				r := bufio.NewReader(c)
				for {
					line, err := r.ReadString('\n')
					if err != nil {
						t.Error(err)
						return
					}
					if strings.HasPrefix(line, "data: ") {
						c.(*net.TCPConn).SetLinger(0) // a reset, not an orderly end
						return
					}
				}
			})
		}
		all.Wait()
	}
	open.Wait()
}
