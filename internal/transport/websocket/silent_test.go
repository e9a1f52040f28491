package websocket_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/internal/transport/websocket"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// one is a listener with one connection, in memory and without any buffer.
type one struct {
	conn   chan net.Conn
	closed chan struct{}
	close  sync.Once
}

func (l *one) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *one) Close() error   { l.close.Do(func() { close(l.closed) }); return nil }
func (l *one) Addr() net.Addr { return &net.UnixAddr{Name: "one"} }

// opened runs f in a bubble, with the reading end of a connection that serve serves, and with the
// error of serve.
func opened(t *testing.T, serve func(conn jsonrpc.Conn) error, f func(t *testing.T, r *bufio.Reader, served <-chan error)) {
	synctest.Test(t, func(t *testing.T) {
		served := make(chan error, 1)
		s := &websocket.Server{MaxMessage: 1000, KeepAlive: time.Minute, Logger: slog.New(slog.DiscardHandler),
			Serve: func(_ context.Context, conn jsonrpc.Conn, _ string) error {
				served <- serve(conn)
				return nil
			}}
		near, far := net.Pipe()
		l := &one{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
		l.conn <- far
		hs := &http.Server{Handler: s}
		go hs.Serve(l)
		defer hs.Close()
		defer near.Close()
		fmt.Fprint(near, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		r := bufio.NewReader(near)
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 101 {
			t.Fatalf("opening = %v, %v", res, err)
		}
		f(t, r, served)
	})
}

// A peer that reads but does not answer a ping is disconnected 30 seconds after it.
func TestSilentPeer(t *testing.T) {
	opened(t, func(conn jsonrpc.Conn) error {
		_, err := conn.Read(nil)
		return err
	}, func(t *testing.T, r *bufio.Reader, served <-chan error) {
		begin := time.Now()
		got, err := io.ReadAll(r)
		if took := time.Since(begin).Round(time.Second); err != nil || took != 90*time.Second || !strings.Contains(string(got), "\x89\x01") {
			t.Errorf("read %q, %v after %v, want a ping and the end after 90s", got, err, took)
		}
		if err := <-served; err != jsonrpc.ErrClosed {
			t.Errorf("the server read %v, want ErrClosed", err)
		}
	})
}

// A peer that does not read is disconnected after 30 seconds.
func TestSlowReader(t *testing.T) {
	opened(t, func(conn jsonrpc.Conn) error {
		err := conn.Write(make([]byte, 10_000))
		if conn.Write([]byte("{}")) == nil {
			return errors.New("the connection goes on")
		}
		return err
	}, func(t *testing.T, _ *bufio.Reader, served <-chan error) {
		begin := time.Now()
		if err := <-served; err == nil || !strings.Contains(err.Error(), "did not read a message") || time.Since(begin) != 30*time.Second {
			t.Errorf("Write = %v after %v, want an error after 30s", err, time.Since(begin))
		}
	})
}
