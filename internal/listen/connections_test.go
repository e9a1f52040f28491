package listen

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/testcert"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
)

// dressed is a listener whose connections come from addresses that a test names.
type dressed struct {
	net.Listener
	from chan string
}

type dressedConn struct {
	net.Conn
	from net.Addr
}

func (c dressedConn) RemoteAddr() net.Addr { return c.from }

func (l dressed) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return dressedConn{c, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(<-l.from))}, nil
}

// The connections per address and in total are bounded; the open ones go on, and closed ones make
// room.
func TestConnectionsAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	from := make(chan string, 1)
	l := boundConnections(dressed{inner, from}, nil)
	l.most, l.each = 6, 2
	accepted := make(chan net.Conn, 100)
	go func() { // ends with inner
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "in\n")
			accepted <- c
		}
	}()
	dial := func(address string) (in bool) {
		t.Helper()
		from <- address
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(20 * time.Second))
		line, err := bufio.NewReader(c).ReadString('\n')
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("neither served nor closed")
		}
		return line == "in\n"
	}
	for _, tt := range []struct {
		from string
		in   bool
	}{
		{"192.0.2.1:1", true}, {"192.0.2.1:2", true}, {"192.0.2.1:3", false}, {"[::ffff:192.0.2.1]:3", false},
		{"[2001:db8::1]:1", true}, {"[2001:db8::2]:1", true}, {"[2001:db8::3]:1", false}, // one network
		{"127.0.0.1:1", true}, {"127.0.0.1:2", true}, {"127.0.0.1:3", false}, // that makes six
		{"192.0.2.7:1", false},
	} {
		if in := dial(tt.from); in != tt.in {
			t.Errorf("a connection from %s is served: %v, want %v", tt.from, in, tt.in)
		}
	}
	first := <-accepted
	first.Close()
	first.Close() // counts once
	if !dial("192.0.2.1:4") || dial("192.0.2.1:5") {
		t.Error("a connection that ended makes room for one other")
	}
}

// Trap 27: HTTP/2 connections are bounded, all together and of one address; a client that finds no
// room speaks HTTP/1.1, and one that ends makes room.
func TestHTTP2IsBounded(t *testing.T) {
	t.Chdir(t.TempDir())
	ca := testcert.New(t, "ca.pem")
	ca.Sign(t, testcert.Loopback(), "server.pem", "")
	f, err := tlsfiles.Open("server.pem", "", "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	from := make(chan string, 1)
	l := boundConnections(dressed{inner, from}, nil)
	srv := &http.Server{TLSConfig: f.Config(mayHTTP2), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) })}
	served := make(chan error, 1)
	go func() { served <- srv.ServeTLS(l, "", "") }()
	t.Cleanup(func() { srv.Close(); <-served })
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	get := func(address string, h2 bool) (client *http.Client, proto string) {
		t.Helper()
		from <- address
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: h2}
		t.Cleanup(transport.CloseIdleConnections)
		client = &http.Client{Transport: transport, Timeout: time.Minute}
		resp, err := client.Get("https://" + inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return client, string(text)
	}
	want := func(address string, h2 bool, proto string) *http.Client {
		t.Helper()
		client, got := get(address, h2)
		if got != proto {
			t.Errorf("%s speaks %s, want %s", address, got, proto)
		}
		return client
	}
	for range maxHTTP2Of {
		want("192.0.2.1:1", true, "HTTP/2.0")
	}
	want("192.0.2.1:1", true, "HTTP/1.1")
	want("192.0.2.2:1", false, "HTTP/1.1") // does not count
	var last *http.Client
	for range maxHTTP2 - maxHTTP2Of {
		last = want("127.0.0.1:1", true, "HTTP/2.0")
	}
	want("192.0.2.2:1", true, "HTTP/1.1")
	last.CloseIdleConnections()
	for until := time.Now().Add(30 * time.Second); ; {
		l.mu.Lock()
		n := l.http2.all
		l.mu.Unlock()
		if n < maxHTTP2 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("a connection that has ended keeps its place")
		}
		time.Sleep(time.Millisecond)
	}
	want("192.0.2.2:1", true, "HTTP/2.0")
}

// A client that sends requests and does not read the answers is disconnected; http.Server alone
// would wait.
func TestWritesAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := boundConnections(inner, nil)
	l.writeTime = 100 * time.Millisecond
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("x", 64<<10))
	})}}
	srv.Start()
	defer srv.Close()
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	for err == nil { // until the connection is reset
		_, err = io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 1000))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a client that does not read is waited for")
	}
}

// Each write has its own time: a connection that was quiet for a while gets all of it again, also
// if net/http has removed the deadline meanwhile.
func TestWritesHaveTimeEach(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	l := boundConnections(inner, nil)
	l.writeTime = 20 * time.Millisecond
	far, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, between := range []func(){
		func() {},
		func() { c.SetWriteDeadline(time.Time{}) },
		func() { c.SetWriteDeadline(time.Now().Add(time.Millisecond)); c.SetWriteDeadline(time.Time{}) },
	} {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		between()
		time.Sleep(2 * l.writeTime)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	c.SetWriteDeadline(time.Now().Add(-time.Second))
	if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline that was set: %v", err)
	}
}
