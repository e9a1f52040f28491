package sse

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// TestReference: the endpoint is valid behind a proxy that serves the same tree below another
// prefix (SSE-24-005).
func TestReference(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"/sse", "/messages", "messages"},
		{"/sse", "/sse", "sse"},
		{"/", "/messages", "messages"},
		{"/", "/", "./"},
		{"/a/sse", "/a/messages", "messages"},
		{"/a/sse", "/messages", "../messages"},
		{"/a/b/sse", "/c/messages", "../../c/messages"},
		{"/a/sse/", "/a/messages", "../messages"},
		{"/sse", "/a/b", "a/b"},
		{"/sse", "/a/", "a/"},
		{"/a/sse", "/a/", "./"},
		{"/sse", "/x:y", "./x:y"},
		{"/sse", "//x", ".//x"},
	} {
		if got := reference(tt.from, tt.to); got != tt.want {
			t.Errorf("reference(%q, %q) = %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}

// FuzzReference: a client resolves the reference to the intended path, with and without a prefix.
func FuzzReference(f *testing.F) {
	f.Add("a/sse", "b/messages")
	f.Add("", "x:y/z")
	f.Fuzz(func(t *testing.T, from, to string) {
		from, to = (&url.URL{Path: "/" + from}).EscapedPath(), (&url.URL{Path: "/" + to}).EscapedPath()
		if strings.HasPrefix(to, "//") {
			t.Skip() // net/url makes one slash of those behind "..", and http.ServeMux has no such path
		}
		for _, prefix := range []string{"", "/pre/fix"} {
			base, target := &url.URL{Scheme: "http", Host: "h"}, &url.URL{}
			if base, _ = url.Parse("http://h" + prefix + from); base == nil {
				t.Skip()
			}
			if target, _ = url.Parse("http://h" + prefix + to); target == nil || base.ResolveReference(target).EscapedPath() != target.EscapedPath() ||
				base.ResolveReference(base).EscapedPath() != base.EscapedPath() {
				t.Skip() // dot segments, which no server has a handler for
			}
			got, err := base.Parse(reference(from, to))
			if err != nil || got.Host != "h" || got.Path != target.Path {
				t.Fatalf("%s has %q, which leads to %v, %v; want %s", base, reference(from, to), got, err, target)
			}
		}
	})
}

// deaf is the response to a client that stops reading after some bytes.
type deaf struct {
	header http.Header
	room   int

	mu       sync.Mutex
	deadline chan struct{} // closed when the write deadline has passed; guarded by mu
	timer    *time.Timer   // guarded by mu
	got      strings.Builder
}

func newDeaf(room int) *deaf { return &deaf{header: http.Header{}, room: room} }

func (d *deaf) Header() http.Header { return d.header }
func (d *deaf) WriteHeader(int)     {}
func (d *deaf) Flush()              {}

func (d *deaf) SetWriteDeadline(at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == nil || !d.timer.Stop() {
		d.deadline = make(chan struct{}) // the previous one has passed
	}
	passed := d.deadline
	d.timer = time.AfterFunc(time.Until(at), func() { close(passed) })
	return nil
}

func (d *deaf) Write(b []byte) (int, error) {
	if d.got.Len()+len(b) <= d.room {
		return d.got.Write(b)
	}
	d.mu.Lock()
	passed := d.deadline
	d.mu.Unlock()
	<-passed
	return 0, errors.New("write deadline passed")
}

// A client that does not read loses its stream after 30 seconds.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeaf(100)
		s := newStream(d, "", time.Minute)
		if err := s.begin("messages"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		err := s.Write([]byte(`{"x":"` + strings.Repeat("x", 100) + `"}`))
		if took := time.Since(start); err == nil || took != writeTimeout {
			t.Errorf("Write = %v after %v, want an error after %v", err, took, writeTimeout)
		}
		if again := s.Write([]byte(`{}`)); !errors.Is(again, err) {
			t.Errorf("next Write = %v, want the same error: half a message may be on the wire", again)
		}
		s.leave()
	})
}

// The keep-alive detects a disconnected client on a quiet stream.
func TestKeepAliveFindsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeaf(60)
		s := newStream(d, "", time.Minute)
		if err := s.begin("messages"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(nil); err != jsonrpc.ErrClosed {
			t.Errorf("Read = %v, want ErrClosed", err)
		}
		s.leave()
		if got := d.got.String(); !strings.HasSuffix(got, "\n\n:\n\n") {
			t.Errorf("wrote %q, want comments at the end", got)
		}
	})
}

// Close ends a Write at once, and leave waits until the response is not in use.
func TestCloseEndsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(newDeaf(100), "", 0)
		if err := s.begin("messages"); err != nil {
			t.Fatal(err)
		}
		start, done := time.Now(), make(chan error)
		go func() { done <- s.Write(make([]byte, 200)) }()
		synctest.Wait()
		s.leave()
		if err := <-done; err != jsonrpc.ErrClosed || time.Since(start) != 0 {
			t.Errorf("Write = %v after %v, want ErrClosed at once", err, time.Since(start))
		}
		if _, err := s.Read(nil); err != jsonrpc.ErrClosed {
			t.Errorf("Read after Close = %v", err)
		}
		if s.deliver(t.Context(), []byte("{}")) {
			t.Error("a message was delivered after Close")
		}
		if err := s.Close(); err != nil {
			t.Errorf("second Close = %v", err)
		}
	})
}
