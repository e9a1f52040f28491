package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// line is a connection on which a body comes in pieces, one after each pause.
type line struct {
	*httptest.ResponseRecorder
	piece, left int
	pause       time.Duration
	deadline    time.Time
}

func (l *line) SetReadDeadline(t time.Time) error { l.deadline = t; return nil }

func (l *line) Close() error { return nil }

func (l *line) Read(b []byte) (int, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	if wait := time.Until(l.deadline); !l.deadline.IsZero() && wait < l.pause {
		time.Sleep(wait)
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(l.pause)
	n := min(len(b), l.piece, l.left)
	l.left -= n
	return n, nil
}

// wrapped is what a middleware makes of a writer.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A body has to come at some pace, which what has come makes up for; and what is read after it
// has no bound.
func TestSlowBody(t *testing.T) {
	for _, tt := range []struct {
		name         string
		bytes, piece int
		pause, took  time.Duration
		err          error
	}{
		{"at once", 1 << 20, 1 << 20, 0, 0, nil},
		{"nothing comes", 1000, 1000, time.Hour, 20 * time.Second, ErrSlow},
		{"byte by byte", 1000, 1, time.Second, 20 * time.Second, ErrSlow},
		{"slow and long", 1 << 20, 2 << 10, time.Second, 513 * time.Second, nil},
		{"too slow and long", 1 << 20, 1 << 9, time.Second, 40 * time.Second, ErrSlow},
		{"it stops", 3 << 10, 1 << 10, 15 * time.Second, 21 * time.Second, ErrSlow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{ResponseRecorder: httptest.NewRecorder(), piece: tt.piece, left: tt.bytes, pause: tt.pause}
				r := httptest.NewRequest("POST", "/", l)
				r.ContentLength = int64(tt.bytes)
				begin := time.Now()
				BoundBody(l, r)
				body, err := ReadBody(nil, wrapped{l}, r, 2<<20)
				if took := time.Since(begin).Round(time.Second); err != tt.err || took != tt.took {
					t.Errorf("ReadBody of %d bytes = %d bytes, %v after %v, want %v after %v", tt.bytes, len(body), err, took, tt.err, tt.took)
				}
				if tt.err == nil && !l.deadline.IsZero() {
					t.Errorf("the deadline stands: %v", l.deadline)
				}
				if tt.err != nil && l.deadline.After(time.Now()) {
					t.Errorf("what is left of the body has until %v", l.deadline)
				}
			})
		})
	}
}

// A request without a body costs nothing, and one whose writer is no connection does no harm.
func TestNoBodyIsNotBounded(t *testing.T) {
	l := &line{ResponseRecorder: httptest.NewRecorder()}
	BoundBody(l, httptest.NewRequest("GET", "/", nil))
	if !l.deadline.IsZero() {
		t.Errorf("deadline %v", l.deadline)
	}
	BoundBody(httptest.NewRecorder(), httptest.NewRequest("POST", "/", l))
}
