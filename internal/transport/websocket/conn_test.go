package websocket_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coder "github.com/coder/websocket"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/internal/transport/websocket"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// echo sends every frame back, and the beginning of those over the limit.
func echo(_ context.Context, conn jsonrpc.Conn, _ string) error {
	defer conn.Close()
	for {
		frame, err := conn.Read(nil)
		var big *jsonrpc.FrameTooLargeError
		if errors.As(err, &big) {
			frame, err = fmt.Appendf(nil, "over %d: %s", big.Limit, big.Head[:3]), nil
		}
		if err != nil {
			return err
		}
		if err := conn.Write(frame); err != nil {
			return err
		}
	}
}

func start(t testing.TB, change func(*websocket.Server)) *httptest.Server {
	t.Helper()
	s := &websocket.Server{Serve: echo, MaxMessage: 1000, MaxConns: 2000, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(s)
	}
	hs := httptest.NewServer(s)
	t.Cleanup(hs.Close)
	return hs
}

func wsURL(hs *httptest.Server) string { return "ws" + strings.TrimPrefix(hs.URL, "http") }

func dial(t testing.TB, hs *httptest.Server) jsonrpc.Conn {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // bounds only the opening
	conn, err := websocket.Dial(ctx, websocket.ClientOptions{URL: wsURL(hs), MaxMessage: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestFrames(t *testing.T) {
	mcptest.LeakCheck(t)
	conn := dial(t, start(t, nil))
	for _, tt := range []struct{ sent, want string }{
		{`{}`, `{}`},
		{strings.Repeat("x", 1000), strings.Repeat("x", 1000)},
		{"abc" + strings.Repeat("x", 998), "over 1000: abc"}, // skipped, and the next is read
		{"def" + strings.Repeat("x", 10_000), "over 1000: def"},
		{"{\n}", "{\n}"},
		{"", ""},
	} {
		if err := conn.Write([]byte(tt.sent)); err != nil {
			t.Fatal(err)
		}
		if got, err := conn.Read(nil); string(got) != tt.want || err != nil {
			t.Errorf("%.20q came back as %.40q, %v", tt.sent, got, err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if _, err := conn.Read(nil); err != jsonrpc.ErrClosed {
		t.Errorf("Read after Close = %v", err)
	}
	if err := conn.Write([]byte("{}")); err != jsonrpc.ErrClosed {
		t.Errorf("Write after Close = %v", err)
	}
}

// TestEnds: what each side sees when the other ends the connection. A message without an end ends
// the connection, with its size in the error.
func TestMessageWithoutEnd(t *testing.T) {
	mcptest.LeakCheck(t)
	ended := make(chan error, 1)
	hs := start(t, func(s *websocket.Server) {
		s.Serve = func(_ context.Context, conn jsonrpc.Conn, _ string) error {
			defer conn.Close()
			for {
				_, err := conn.Read(nil)
				ended <- err
				if large := (*jsonrpc.FrameTooLargeError)(nil); !errors.As(err, &large) {
					return err
				}
			}
		}
	})
	ws, _, err := coder.Dial(t.Context(), wsURL(hs), &coder.DialOptions{Subprotocols: []string{websocket.Subprotocol}})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	w, err := ws.Writer(t.Context(), coder.MessageText)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bytes.Repeat([]byte("x"), 5000)); err != nil { // over its buffer, so that it goes out
		t.Fatal(err)
	}
	var large *jsonrpc.FrameTooLargeError
	if err := <-ended; !errors.As(err, &large) || large.Limit != 1000 {
		t.Errorf("Read of a message that has not ended = %v, want a FrameTooLargeError", err)
	}
	for range 100 * jsonrpc.EndlessFrame {
		if _, err := w.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
			break // the connection has ended
		}
	}
	var end *jsonrpc.EndlessFrameError
	if err := <-ended; !errors.As(err, &end) || end.Limit != 1000 || end.Read < jsonrpc.EndlessFrame*1000 {
		t.Errorf("Read = %v, want an EndlessFrameError that names the bytes", err)
	}
}

func TestEnds(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, tt := range []struct {
		name string
		end  func(c *coder.Conn)
		want string           // what the server reads
		code coder.StatusCode // the close status for the client; zero: none
	}{
		{"normal", func(c *coder.Conn) { c.Close(coder.StatusNormalClosure, "") }, "EOF", 0},
		{"leaves the page", func(c *coder.Conn) { c.Close(coder.StatusGoingAway, "") }, "EOF", 0},
		{"fault", func(c *coder.Conn) { c.Close(coder.StatusInternalError, "why") }, `status 1011: "why"`, 0},
		{"cut off", func(c *coder.Conn) { c.CloseNow() }, "unexpected EOF", 0},
		{"binary", func(c *coder.Conn) { c.Write(context.Background(), coder.MessageBinary, []byte("{}")) }, "binary", coder.StatusUnsupportedData},
	} {
		t.Run(tt.name, func(t *testing.T) {
			read := make(chan error, 1)
			hs := start(t, func(s *websocket.Server) {
				s.Serve = func(_ context.Context, conn jsonrpc.Conn, _ string) error {
					defer conn.Close()
					_, err := conn.Read(nil)
					read <- err
					return err
				}
			})
			c, _, err := coder.Dial(t.Context(), wsURL(hs), nil) // no subprotocol: served as well
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseNow()
			tt.end(c)
			if err := <-read; err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the server read %v, want %q", err, tt.want)
			}
			if tt.code != 0 {
				_, _, err := c.Read(t.Context())
				if got := coder.CloseStatus(err); got != tt.code {
					t.Errorf("closed with %v (%v), want %v", got, err, tt.code)
				}
			}
		})
	}
	t.Run("server", func(t *testing.T) {
		hs := start(t, func(s *websocket.Server) {
			s.Serve = func(_ context.Context, conn jsonrpc.Conn, _ string) error { return conn.Close() }
		})
		c, _, err := coder.Dial(t.Context(), wsURL(hs), &coder.DialOptions{Subprotocols: []string{"other", "mcp"}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		if c.Subprotocol() != "mcp" {
			t.Errorf("subprotocol %q, want mcp", c.Subprotocol())
		}
		if _, _, err := c.Read(t.Context()); coder.CloseStatus(err) != coder.StatusGoingAway {
			t.Errorf("Read = %v, want status 1001", err)
		}
		if _, err := dial(t, hs).Read(nil); err != io.EOF {
			t.Errorf("our client reads %v, want EOF", err)
		}
	})
}

// raw opens a connection by hand and returns it after the handshake, nil if that
// failed.
func raw(t testing.TB, hs *httptest.Server) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", hs.Listener.Addr().String())
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 101 {
		t.Errorf("opening = %v, %v", res, err)
		c.Close()
		return nil, nil
	}
	return c, r
}

// frame is one masked frame, with a mask of zeros.
func frame(first byte, payload []byte) []byte {
	b := []byte{first, 0x80 | 127}
	b = binary.BigEndian.AppendUint64(b, uint64(len(payload)))
	return append(append(b, 0, 0, 0, 0), payload...)
}

// TestHostileFrames: hostile frames end the connection soon, or are reassembled.
func TestHostileFrames(t *testing.T) {
	mcptest.LeakCheck(t)
	hs := start(t, nil)
	for _, tt := range []struct {
		name string
		sent []byte
		want string // in what comes back before the end
	}{
		{"fragments", append(append(frame(0x01, []byte("ab")), frame(0x80, []byte("c"))...), frame(0x88, []byte("\x03\xe8"))...), "\x81\x03abc"},
		{"reserved bit", frame(0xc1, []byte("x")), "\x03\xea"},      // 1002
		{"unknown opcode", frame(0x83, []byte("x")), "\x03\xea"},    // 1002
		{"lone continuation", frame(0x80, []byte("x")), "\x03\xea"}, // 1002
		{"large control frame", frame(0x89, bytes.Repeat([]byte("x"), 200)), "\x03\xea"},
		{"no mask", []byte{0x81, 1, 'x'}, ""},
		{"length of 2^63", []byte{0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, ""},
		{"garbage", []byte("GET / HTTP/1.1\r\n\r\n"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, r := raw(t, hs)
			if c == nil {
				t.FailNow()
			}
			defer c.Close()
			begin := time.Now()
			c.SetDeadline(begin.Add(8 * time.Second)) // for one that the server does not end: the Close of the library takes 10 seconds
			if _, err := c.Write(tt.sent); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			var late net.Error
			if errors.As(err, &late) && late.Timeout() || !strings.Contains(string(got), tt.want) {
				t.Errorf("read %q, %v after %v, want %q and the end", got, err, time.Since(begin), tt.want)
			}
		})
	}
}

// A client that never reads does not block the server beyond the end of its connection.
func TestCloseOfDeafPeer(t *testing.T) {
	mcptest.LeakCheck(t)
	writing, ended := make(chan jsonrpc.Conn, 1), make(chan error, 1)
	hs := start(t, func(s *websocket.Server) {
		s.Serve = func(_ context.Context, conn jsonrpc.Conn, _ string) error {
			writing <- conn
			big := []byte(strings.Repeat("x", 1<<20))
			for {
				if err := conn.Write(big); err != nil {
					ended <- err
					return err
				}
			}
		}
	})
	c, _ := raw(t, hs)
	if c == nil {
		t.FailNow()
	}
	defer c.Close()
	conn := <-writing
	begin := time.Now()
	conn.Close()
	if err := <-ended; err != jsonrpc.ErrClosed || time.Since(begin) > 8*time.Second { // the Close of the library takes 10
		t.Errorf("Write = %v after %v, want ErrClosed after a moment", err, time.Since(begin))
	}
}

// A quiet peer is pinged, again and again.
func TestPing(t *testing.T) {
	n, pinged := 0, make(chan struct{})
	hs := start(t, func(s *websocket.Server) { s.KeepAlive = 10 * time.Millisecond })
	c, _, err := coder.Dial(t.Context(), wsURL(hs), &coder.DialOptions{
		OnPingReceived: func(context.Context, []byte) bool {
			if n++; n == 3 { // the first ones were answered, or there would be no third
				close(pinged)
			}
			return true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	go c.Read(context.Background()) // answers the pings; ends with CloseNow
	<-pinged
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, host, origin string
		change             func(*websocket.Server)
		status             int
	}{
		{"page of elsewhere", "", "https://evil.example.com", nil, 403},
		{"listed page", "", "https://app.example.com", func(s *websocket.Server) { s.Guard.AllowedOrigins = []string{"https://app.example.com"} }, 101},
		{"rebound name", "evil.example.com", "", nil, 403},
		{"rebound name, same origin", "evil.example.com", "http://evil.example.com", nil, 403},
		{"shutting down", "", "", func(s *websocket.Server) { c := make(chan struct{}); close(c); s.Drain = c }, 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hs := start(t, tt.change)
			h := http.Header{}
			if tt.origin != "" {
				h.Set("Origin", tt.origin)
			}
			c, res, err := coder.Dial(t.Context(), wsURL(hs), &coder.DialOptions{Host: tt.host, HTTPHeader: h})
			if res == nil || res.StatusCode != tt.status {
				t.Errorf("opening = %v, %v, want %d", res, err, tt.status)
			}
			if c != nil {
				c.CloseNow()
			}
		})
	}
	t.Run("too many", func(t *testing.T) {
		hs := start(t, func(s *websocket.Server) { s.MaxConns = 1 })
		dial(t, hs)
		_, err := websocket.Dial(t.Context(), websocket.ClientOptions{URL: wsURL(hs)})
		var he *engine.HTTPError
		if !errors.As(err, &he) || he.Status != http.StatusServiceUnavailable {
			t.Errorf("Dial = %v, want HTTP 503", err)
		}
	})
	t.Run("too many of one principal", func(t *testing.T) { // trap 8
		hs := start(t, func(s *websocket.Server) {
			s.MaxConns = 8
			s.Principal = func(r *http.Request) string { return r.Header.Get("X-User") }
		})
		as := func(user string) error {
			c, err := websocket.Dial(t.Context(), websocket.ClientOptions{URL: wsURL(hs), Header: http.Header{"X-User": {user}}})
			if err == nil {
				t.Cleanup(func() { c.Close() })
			}
			return err
		}
		for _, user := range []string{"eve", "eve", "ada"} {
			if err := as(user); err != nil {
				t.Errorf("Dial of %s = %v", user, err)
			}
		}
		var he *engine.HTTPError
		if err := as("eve"); !errors.As(err, &he) || he.Status != http.StatusServiceUnavailable {
			t.Errorf("Dial of eve, who has a quarter = %v, want HTTP 503", err)
		}
		if err := as("bob"); err != nil {
			t.Errorf("Dial of bob = %v", err)
		}
	})
	t.Run("no upgrade", func(t *testing.T) {
		res, err := http.Get(start(t, nil).URL)
		if err != nil || res.StatusCode != http.StatusUpgradeRequired {
			t.Fatalf("GET = %v, %v, want 426", res, err)
		}
		res.Body.Close()
	})
}

func TestDialErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		status int
	}{
		{"401", func(w http.ResponseWriter, _ *http.Request) { web.Refuse(w, 401, -5, "who are you") }, 401},
		{"page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, 200},
		{"redirect to elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil.example.com", http.StatusPermanentRedirect)
		}, 308},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hs := httptest.NewServer(tt.answer)
			defer hs.Close()
			_, err := websocket.Dial(t.Context(), websocket.ClientOptions{URL: wsURL(hs)})
			var he *engine.HTTPError
			if !errors.As(err, &he) || he.Status != tt.status {
				t.Errorf("Dial = %v, want HTTP %d", err, tt.status)
			}
		})
	}
	t.Run("silence", func(t *testing.T) {
		hs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		defer hs.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		late := errors.New("too late")
		defer time.AfterFunc(50*time.Millisecond, func() { cancel(late) }).Stop()
		if _, err := websocket.Dial(ctx, websocket.ClientOptions{URL: wsURL(hs)}); err != late {
			t.Errorf("Dial = %v, want the cause of ctx", err)
		}
	})
}

// A thousand clients whose connections are reset leave nothing behind.
func TestAbruptDisconnects(t *testing.T) {
	mcptest.LeakCheck(t)
	var open sync.WaitGroup
	hs := start(t, func(s *websocket.Server) {
		s.KeepAlive = time.Minute
		s.Serve = func(ctx context.Context, conn jsonrpc.Conn, p string) error {
			defer open.Done()
			return echo(ctx, conn, p)
		}
	})
	for range 20 {
		var all sync.WaitGroup
		for range 50 {
			open.Add(1)
			all.Go(func() {
				if c, _ := raw(t, hs); c != nil {
					c.(*net.TCPConn).SetLinger(0) // a reset, not an orderly end
					c.Close()
				}
			})
		}
		all.Wait()
	}
	open.Wait()
}
