package web

import (
	"errors"
	"net/http"
	"os"
	"time"
)

// How fast a body has to come: a client may take its time, but not for ever.
const (
	bodyGrace = 20 * time.Second // for any body
	bodyRate  = 1 << 10          // bytes for each second beyond that
)

// ErrSlow says that the body of a request came too slowly.
var ErrSlow = errors.New("body comes too slowly")

// TooSlow says so to who sent it.
const TooSlow = "the body came too slowly: it may take 20 seconds, and one more for each KiB"

// pace is the time that a body still has.
type pace struct {
	on    deadliner // nil: it is no connection, and there is nothing to bound
	begin time.Time
}

// deadliner is a connection, as its http.ResponseWriter shows it.
type deadliner interface{ SetReadDeadline(time.Time) error }

// paceOf begins the time of a body.
func paceOf(w http.ResponseWriter) pace {
	for w != nil { // as an http.ResponseController does, which makes an error if there is none
		if on, ok := w.(deadliner); ok {
			return pace{on, time.Now()}
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = inner.Unwrap()
	}
	return pace{}
}

// BoundBody bounds the reading of a body, if the request has one, by whomever: net/http itself
// reads what a handler did not, before it sends the answer. [ReadBody] goes on from there.
func BoundBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		paceOf(w).got(0)
	}
}

// got gives the body more time for the bytes that have come so far.
func (p pace) got(n int) {
	if p.on != nil {
		_ = p.on.SetReadDeadline(p.begin.Add(bodyGrace + time.Duration(n)*time.Second/bodyRate))
	}
}

// whole ends the bound: what is read from now on is whether the client leaves.
func (p pace) whole() {
	if p.on != nil {
		_ = p.on.SetReadDeadline(time.Time{})
	}
}

// slow turns the error of a read that took too long into [ErrSlow].
func slow(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ErrSlow
	}
	return err
}
