package listen

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// deadlineCounter counts how often a deadline for reads is set.
type deadlineCounter struct {
	net.Listener
	set *atomic.Int64
}

type countedConn struct {
	net.Conn
	set *atomic.Int64
}

func (l deadlineCounter) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.set}, err
}

func (c countedConn) SetReadDeadline(t time.Time) error {
	c.set.Add(1)
	return c.Conn.SetReadDeadline(t)
}

// pair returns an accepted connection and its other end.
func pair(t *testing.T, set *atomic.Int64) (c, far net.Conn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	if far, err = net.Dial("tcp", inner.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	if c, err = boundConnections(deadlineCounter{inner, set}, nil).Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, far
}

// A deadline for reads that was moved holds as if it had been set at once.
func TestReadDeadlinesMove(t *testing.T) {
	var set atomic.Int64
	c, far := pair(t, &set)
	read := func() error { _, err := c.Read(make([]byte, 1)); return err }

	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	for _, later := range []time.Time{time.Now().Add(time.Minute), {}} {
		c.SetReadDeadline(later)
		time.AfterFunc(60*time.Millisecond, func() { far.Write([]byte("x")) })
		if err := read(); err != nil {
			t.Errorf("a read before its deadline, which was moved to %v: %v", later, err)
		}
	}

	c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	until := time.Now().Add(60 * time.Millisecond)
	c.SetReadDeadline(until)
	if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().Before(until) {
		t.Errorf("%v before its deadline, which was moved: %v", time.Until(until), err)
	}

	for _, before := range []time.Time{{}, time.Now().Add(time.Minute)} { // as net/http ends a read
		c.SetReadDeadline(before)
		time.AfterFunc(20*time.Millisecond, func() { c.SetReadDeadline(time.Unix(1, 0)) })
		if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a read that was ended: %v", err)
		}
	}
}

// Net/http moves the deadline five times for a request; two of them are set.
func TestFewReadDeadlines(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var set atomic.Int64
	srv := &httptest.Server{Listener: boundConnections(deadlineCounter{inner, &set}, nil), Config: &http.Server{
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }),
	}}
	srv.Start()
	defer srv.Close()
	const n = 100
	for range n {
		resp, err := srv.Client().Post(srv.URL, "text/plain", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if got := set.Load(); got > 2*n+n/2 {
		t.Errorf("%d deadlines for %d requests", got, n)
	}
}
