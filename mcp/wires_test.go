package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/wine"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// serveWires serves s on every wire that has an address, and returns the addresses by
// name. Listening ends with the test, after the sessions of s.
func serveWires(t *testing.T, s *mcp.Server) map[string]string {
	t.Helper()
	mux := http.NewServeMux()
	sse := s.SSE("/messages")
	mux.Handle("/mcp", s)
	mux.Handle("/sse", sse)
	mux.Handle("/messages", sse)
	mux.Handle("/ws", s.WebSocket())
	hs := httptest.NewServer(mux)
	t.Cleanup(hs.Close)
	urls := map[string]string{
		"sse":       hs.URL + "/sse",
		"websocket": "ws" + strings.TrimPrefix(hs.URL, "http") + "/ws",
	}
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		var serving sync.WaitGroup
		serving.Go(func() {
			if err := s.ServeListener(t.Context(), l); !errors.Is(err, mcp.ErrClosed) && !errors.Is(err, context.Canceled) {
				t.Errorf("ServeListener = %v", err)
			}
		})
		t.Cleanup(serving.Wait)
		return l
	}
	urls["tcp"] = "tcp://" + listen("tcp", "127.0.0.1:0").Addr().String()
	if !wine.On() { // it has no Unix sockets
		urls["unix"] = "unix://" + filepath.ToSlash(listen("unix", filepath.Join(t.TempDir(), "s")).Addr().String())
	}
	return urls
}

// TestWires: what a call does on the way works on each wire (TRAN-25-001, TRAN-26-002,
// -003), with the revision that was asked for.
func TestWires(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			w := newWorkshop()
			mcp.AddTool(w.Server, mcp.Tool{Name: "paint"}, func(ctx context.Context, _ struct{}) (string, error) {
				mcp.Progress(ctx, 1, 2, "half")
				if rev < mcp.V2025_06_18 {
					return "unasked", nil
				}
				c, err := mcp.Elicit[color](ctx, "which color?")
				return c.Color, err
			})
			mcp.AddTool(w.Server, mcp.Tool{Name: "fail"}, func(context.Context, struct{}) (string, error) { return "", errors.New("no paint") })
			for name, url := range serveWires(t, w.Server) {
				if name == "sse" && rev == mcp.V2026_07_28 {
					continue
				}
				t.Run(name, func(t *testing.T) {
					c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}, OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"color": "red"}}, nil
					}}
					c.OnFrame = mcptest.Check(t, rev, true, nil)
					s, err := c.Dial(t.Context(), url)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					if s.Revision() != rev {
						t.Errorf("revision %s", s.Revision())
					}
					var progress []float64
					got, err := s.CallTool(t.Context(), "paint", nil, mcp.OnProgress(func(done, _ float64, _ string) { progress = append(progress, done) }))
					want := "red"
					if rev < mcp.V2025_06_18 {
						want = "unasked"
					}
					if err != nil || got.Text() != want || len(progress) == 0 {
						t.Errorf("paint = %v, %v with progress %v, want %q", got, err, progress, want)
					}
					if got, err := s.CallTool(t.Context(), "fail", nil); err != nil || !got.IsError || got.Text() != "no paint" {
						t.Errorf("fail = %+v, %v", got, err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error)
					go func() { _, err := s.CallTool(ctx, "wait", nil); ended <- err }()
					<-w.started
					cancel()
					if err := <-ended; !errors.Is(err, context.Canceled) {
						t.Errorf("wait = %v", err)
					}
					if cause := <-w.causes; cause == nil || !strings.Contains(cause.Error(), "cancelled") {
						t.Errorf("the handler's context ended because of %v", cause)
					}
					<-w.late
					echo(t, s)
					if err := s.Close(); err != nil {
						t.Errorf("Close = %v", err)
					}
				})
			}
		})
	}
}

// TestShutdownOfWires: calls at work get their answers, connections end, nothing new is
// taken, and all of it in time.
func TestShutdownOfWires(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		for _, stuck := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stuck=%v", rev, stuck), func(t *testing.T) {
				t.Parallel()
				w := newWorkshop()
				urls := serveWires(t, w.Server)
				if rev == mcp.V2026_07_28 {
					delete(urls, "sse")
				}
				ended := make(chan error, len(urls))
				sessions := map[string]*mcp.Session{}
				for name, url := range urls {
					s, err := (&mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}}).Dial(t.Context(), url)
					if err != nil {
						t.Fatal(name, err)
					}
					defer s.Close()
					sessions[name] = s
					go func() { _, err := s.CallTool(t.Context(), "stuck", nil); ended <- err }()
					<-w.started
				}
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if stuck {
					defer close(w.release) // after all
				} else {
					ctx = t.Context()
					close(w.release)
				}
				begin := time.Now()
				if err := w.Shutdown(ctx); (err != nil) != stuck {
					t.Errorf("Shutdown = %v", err)
				}
				if took := time.Since(begin); took > time.Minute {
					t.Errorf("Shutdown took %v", took)
				}
				for range urls {
					if err := <-ended; (err != nil) != stuck {
						t.Errorf("a call at work = %v", err)
					}
				}
				for name, s := range sessions {
					<-s.Done()
					if s.Err() == nil {
						t.Errorf("%s: the session is over without a reason", name)
					}
				}
				for name, url := range urls {
					if s, err := (&mcp.Client{Name: "c"}).Dial(t.Context(), url); err == nil {
						s.Close()
						t.Errorf("%s: a session was opened after Shutdown", name)
					}
				}
			})
		}
	}
}

// TestPrincipalOfWires: what middleware in front of the server found out reaches handlers.
func TestPrincipalOfWires(t *testing.T) {
	w := newWorkshop()
	w.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("X-User") }
	mcp.AddTool(w.Server, mcp.Tool{Name: "who"}, func(ctx context.Context, _ struct{}) (string, error) {
		return mcp.CallFrom(ctx).Principal, nil
	})
	urls := serveWires(t, w.Server)
	c := &mcp.Client{Name: "c", Header: http.Header{"X-User": {"ada"}}}
	for name, want := range map[string]string{"sse": "ada", "websocket": "ada", "tcp": ""} {
		s, err := c.Dial(t.Context(), urls[name])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.CallTool(t.Context(), "who", nil); err != nil || got.Text() != want {
			t.Errorf("%s: who = %v, %v, want %q", name, got, err, want)
		}
		s.Close()
	}
	w.Shutdown(t.Context())
}

// TestFallbackToSSE: HTTP-26-077, SHTTP-25-045. The GET is sent only when the answers to
// POST are those of a server of 2024-11-05.
func TestFallbackToSSE(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, tt := range []struct {
		name   string
		status int
		body   string // of the answer to any POST
		want   string // part of the error; empty: the session opens
		gets   int
	}{
		{"400", 400, "session id, please", "", 1},
		{"404", 404, "<html>Cannot POST /sse", "", 1},
		{"405", 405, "", "", 1},
		{"404 with an error of its own", 404, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}`, "", 1},
		{"404 of the modern era", 404, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no method"}}`, "no method", 0},
		{"400 of the modern era", 400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"header"}}`, "header", 0},
		{"401", 401, "", "401", 0},
		{"403", 403, "", "403", 0},
		{"500", 500, "", "500", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := newWorkshop()
			sse := srv.SSE("/messages")
			var mu sync.Mutex
			var posts, gets int
			mux := http.NewServeMux()
			mux.Handle("POST /messages", sse)
			mux.HandleFunc("/sse", func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				if r.Method == "GET" {
					gets++
				} else {
					posts++
				}
				mu.Unlock()
				if r.Method == "GET" {
					sse.ServeHTTP(w, r)
					return
				}
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			})
			hs := httptest.NewServer(mux)
			defer hs.Close()
			defer srv.Shutdown(t.Context())
			c := &mcp.Client{Name: "c"}
			for round := range 2 {
				posts, gets = 0, 0
				s, err := c.Dial(t.Context(), hs.URL+"/sse")
				if gets != tt.gets {
					t.Errorf("%d GETs, want %d", gets, tt.gets)
				}
				if tt.want != "" {
					if err == nil || !strings.Contains(err.Error(), tt.want) {
						t.Fatalf("Dial = %v, want %q", err, tt.want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if want := 2 - 2*round; posts != want { // server/discover and initialize; then it is known
					t.Errorf("Dial %d sent %d POSTs to the stream, want %d", round, posts, want)
				}
				if s.Revision() != mcp.V2025_11_25 || !strings.Contains(s.Negotiation(), "HTTP+SSE") {
					t.Errorf("session speaks %s by %q", s.Revision(), s.Negotiation())
				}
				echo(t, s)
				s.Close()
			}
		})
	}
	t.Run("neither", func(t *testing.T) {
		hs := httptest.NewServer(http.NotFoundHandler())
		defer hs.Close()
		_, err := (&mcp.Client{}).Dial(t.Context(), hs.URL)
		var he *mcp.HTTPError
		if !errors.As(err, &he) || he.Status != 404 || !strings.Contains(err.Error(), "is this the MCP endpoint?") {
			t.Errorf("Dial = %v", err)
		}
	})
	t.Run("endpoint of elsewhere", func(t *testing.T) { // SSE-24-006
		hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				w.WriteHeader(405)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "event: endpoint\ndata: https://evil.example.com/steal\n\n")
		}))
		defer hs.Close()
		if _, err := (&mcp.Client{}).Dial(t.Context(), hs.URL); err == nil || !strings.Contains(err.Error(), "evil.example.com") {
			t.Errorf("Dial = %v", err)
		}
	})
	t.Run("both on one host", func(t *testing.T) { // HTTP-26-078
		w := newWorkshop()
		hs := serveWires(t, w.Server)["sse"]
		for _, url := range []string{hs, strings.TrimSuffix(hs, "sse") + "mcp"} {
			s, err := (&mcp.Client{}).Dial(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			echo(t, s)
			s.Close()
		}
		w.Shutdown(t.Context())
	})
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{
		"", "mcp", "localhost:7420", "http://", "ftp://h/x", "ws:///x", "tcp://127.0.0.1", "tcp://127.0.0.1:1/x",
		"unix://host/path", "unix://", "unix:rel", "file:///x", "http://[::1", "javascript:alert(1)",
	} {
		s, err := (&mcp.Client{}).Dial(t.Context(), bad)
		if err == nil || !strings.HasPrefix(err.Error(), "dial") {
			t.Errorf("Dial(%q) = %v, %v", bad, s, err)
		}
	}
	// Nobody listens there.
	for _, url := range []string{"tcp://127.0.0.1:1", "unix:///nowhere/s", "ws://127.0.0.1:1/"} {
		var op *net.OpError
		if _, err := (&mcp.Client{}).Dial(t.Context(), url); !errors.As(err, &op) {
			t.Errorf("Dial(%q) = %v", url, err)
		}
	}
}

// A server that hangs up at server/discover is dialled again, as a legacy one.
func TestHangUpAtProbe(t *testing.T) {
	mcptest.LeakCheck(t)
	w := newWorkshop()
	w.Revisions = []mcp.Revision{mcp.V2025_06_18}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Shutdown(t.Context())
	go w.ServeListener(t.Context(), &touchy{Listener: l})
	c := &mcp.Client{}
	for range 2 {
		s, err := c.Dial(t.Context(), "tcp://"+l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		echo(t, s)
		s.Close()
	}
}

// touchy accepts connections that end at a message with the word discover.
type touchy struct{ net.Listener }

func (l *touchy) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return touchyConn{c}, err
}

type touchyConn struct{ net.Conn }

func (c touchyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if strings.Contains(string(b[:n]), "discover") {
		c.Close()
		return 0, io.EOF
	}
	return n, err
}

// A thousand sockets that are cut off leave nothing behind, and the listener goes on.
func TestAbruptSockets(t *testing.T) {
	wine.Skip(t, "Accept fails when a client resets its connection early; Windows goes on to the next")
	mcptest.LeakCheck(t)
	w := newWorkshop()
	url := serveWires(t, w.Server)["tcp"]
	for range 20 {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				c, err := net.Dial("tcp", strings.TrimPrefix(url, "tcp://"))
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Fprintf(c, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"+`{"jsonrpc"`)
				c.(*net.TCPConn).SetLinger(0)
				c.Close()
			})
		}
		all.Wait()
	}
	s, err := (&mcp.Client{}).Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, s)
	s.Close()
	w.Shutdown(t.Context())
}

// faultyListener hands out one connection, and errors before and after.
type faultyListener struct {
	faults int
	conn   chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func (l *faultyListener) Accept() (net.Conn, error) {
	if l.faults--; l.faults >= 0 {
		return nil, errors.New("too many open files")
	}
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *faultyListener) Close() error   { l.close.Do(func() { close(l.closed) }); return nil }
func (l *faultyListener) Addr() net.Addr { return &net.UnixAddr{Name: "faulty"} }

// A peer that does not read is given up after 30 seconds, and a listener that fails
// only for a while goes on.
func TestDeafSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe() // without any buffer
		l := &faultyListener{faults: 5, conn: make(chan net.Conn, 1), closed: make(chan struct{})}
		l.conn <- far
		w := newWorkshop()
		over := make(chan error)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { over <- w.ServeListener(ctx, l) }()
		if _, err := near.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := io.ReadAll(slowly{near}); err != nil {
			t.Errorf("Read = %v", err)
		}
		if took := time.Since(begin); took < 30*time.Second || took > 40*time.Second {
			t.Errorf("the connection ended after %v, want 30s", took)
		}
		why := errors.New("enough")
		cancel(why)
		if err := <-over; err != why {
			t.Errorf("ServeListener = %v, want the cause of ctx", err)
		}
	})
}

// slowly does not read for a long time.
type slowly struct{ io.Reader }

func (r slowly) Read(b []byte) (int, error) {
	t := time.NewTimer(35 * time.Second)
	<-t.C
	return r.Reader.Read(b)
}

// A listener that fails for good ends ServeListener with its error.
func TestBrokenListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &faultyListener{faults: 1000, closed: make(chan struct{})}
		if err := newWorkshop().ServeListener(t.Context(), l); err == nil || !strings.Contains(err.Error(), "too many open files") {
			t.Errorf("ServeListener = %v", err)
		}
		<-l.closed
	})
}

// Messages on a socket are framed as on stdio: a message is a line (TRAN-26-005).
func TestSocketsCarryLines(t *testing.T) {
	for name, url := range serveWires(t, newWorkshop().Server) {
		network, address, _ := strings.Cut(url, "://")
		if name != "tcp" && name != "unix" {
			continue
		}
		c, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(c)
		for id := range int64(3) {
			if _, err := io.WriteString(c, modern(id, "tools/call", `{}`, `"name":"echo","arguments":{"text":"two\nlines"}`)+"\n"); err != nil {
				t.Fatal(err)
			}
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if m, err := jsonrpc.Decode([]byte(line), jsonrpc.Limits{}); err != nil || m.ID != jsonrpc.IntID(id) {
				t.Errorf("%s: the line %q: %v", name, line, err)
			}
		}
		c.Close()
	}
}
