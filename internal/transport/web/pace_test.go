package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// line is a connection on which a body arrives in pieces, one after each pause.
type line struct {
	*httptest.ResponseRecorder
	piece, left int
	pause       time.Duration

	mu    sync.Mutex
	until time.Time     // guarded by mu
	moved chan struct{} // closed when until changes; guarded by mu; nil: no waiter
}

func (l *line) SetReadDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until = t; l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
	return nil
}

func (l *line) deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// wait returns false if there is a deadline before the pause is over.
func (l *line) wait() bool {
	over := time.After(l.pause)
	for {
		l.mu.Lock()
		moved := make(chan struct{})
		l.moved = moved
		var late <-chan time.Time
		if !l.until.IsZero() {
			late = time.After(time.Until(l.until))
		}
		l.mu.Unlock()
		select {
		case <-over:
			return true
		case <-late:
			return false
		case <-moved:
		}
	}
}

func (l *line) Close() error { return nil }

func (l *line) Read(b []byte) (int, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	if !l.wait() {
		return 0, os.ErrDeadlineExceeded
	}
	n := min(len(b), l.piece, l.left)
	l.left -= n
	return n, nil
}

// wrapped is a writer wrapped by a middleware.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A body must arrive at a minimum rate, averaged over the body; reads after it are not bounded.
func TestSlowBody(t *testing.T) {
	for _, tt := range []struct {
		name         string
		bytes, piece int
		pause        time.Duration
		before       time.Duration // before the Pacer's first check
		took         time.Duration
		err          error
	}{
		{"at once", 1 << 20, 1 << 20, 0, 0, 0, nil},
		{"nothing comes", 1000, 1000, time.Hour, 0, 21 * time.Second, ErrSlow},
		{"nothing comes, looks go on", 1000, 1000, time.Hour, time.Second - 1, 20 * time.Second, ErrSlow},
		{"byte by byte", 1000, 1, time.Second, 0, 21 * time.Second, ErrSlow},
		{"slow and long", 1 << 20, 2 << 10, time.Second, 0, 513 * time.Second, nil},
		{"too slow and long", 1 << 20, 500, time.Second, 0, 41 * time.Second, ErrSlow},
		{"it stops", 3 << 10, 1 << 10, 15 * time.Second, 0, 22 * time.Second, ErrSlow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p Pacer
				first := p.Begin(nil, request(nil, 1))
				time.Sleep(tt.before)
				first.whole()
				first.End()

				l := &line{ResponseRecorder: httptest.NewRecorder(), piece: tt.piece, left: tt.bytes, pause: tt.pause}
				r := request(l, tt.bytes)
				begin := time.Now()
				pace := p.Begin(wrapped{l}, r)
				body, err := ReadBody(nil, l, r, pace, 2<<20)
				if took := time.Since(begin); err != tt.err || took.Round(time.Second) != tt.took {
					t.Errorf("ReadBody of %d bytes = %d bytes, %v after %v, want %v after %v", tt.bytes, len(body), err, took, tt.err, tt.took)
				}
				if tt.err == nil && !l.deadline().IsZero() {
					t.Errorf("the deadline stands: %v", l.deadline())
				}
				if tt.err != nil && l.deadline().After(time.Now()) {
					t.Errorf("what is left of the body has until %v", l.deadline())
				}
				pace.End()
				time.Sleep(3 * pacerLook)
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.ticks || p.newest != nil {
					t.Error("the Pacer looks on when there is nothing to see")
				}
			})
		})
	}
}

// request is a POST whose body has the declared length bytes.
func request(body io.ReadCloser, bytes int) *http.Request {
	r := httptest.NewRequest("POST", "/", body)
	r.ContentLength = int64(bytes)
	return r
}

// net/http reads the part of a body that a handler leaves, while the handler runs and after it.
func TestUnreadBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pacer
		long, short := &line{ResponseRecorder: httptest.NewRecorder()}, &line{ResponseRecorder: httptest.NewRecorder()}
		begin := time.Now()
		one := p.Begin(long, request(long, 1000))
		two := p.Begin(short, request(short, 1000))
		two.End()
		if got := short.deadline().Sub(begin); got != bodyGrace {
			t.Errorf("when the handler has returned the body has %v, want %v", got, bodyGrace)
		}
		time.Sleep(3 * pacerLook)
		if got := long.deadline().Sub(begin); got != bodyGrace+pacerLook {
			t.Errorf("while the handler runs the body has %v, want %v", got, bodyGrace+pacerLook)
		}
		one.End()
		if got := long.deadline().Sub(begin); got != bodyGrace+pacerLook {
			t.Errorf("after that the body has %v, want %v", got, bodyGrace+pacerLook)
		}
	})
}

// A request without a body is not watched, and a writer without a connection does no harm.
func TestNoBodyIsNotBounded(t *testing.T) {
	l := &line{ResponseRecorder: httptest.NewRecorder()}
	BoundBody(l, httptest.NewRequest("GET", "/", nil))
	if !l.deadline().IsZero() {
		t.Errorf("deadline %v", l.deadline())
	}
	BoundBody(httptest.NewRecorder(), request(l, 1))
	var p Pacer
	if pace := p.Begin(l, httptest.NewRequest("GET", "/", nil)); pace != nil || p.ticks {
		t.Errorf("a request without a body is watched")
	}
	p.Begin(httptest.NewRecorder(), request(l, 1)).End()
}
