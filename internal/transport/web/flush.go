package web

import (
	"fmt"
	"net/http"
)

// BufferedError says that no event stream can be sent, because something in front of the
// handler keeps what is written until the handler returns.
type BufferedError struct {
	Writer string // Go type of the http.ResponseWriter that does it
}

func (e *BufferedError) Error() string {
	return "event streams do not work behind a middleware whose ResponseWriter, here " + e.Writer +
		", has neither Flush nor Unwrap: add the method Unwrap() http.ResponseWriter to it, or serve this handler without it (http.TimeoutHandler has neither)"
}

// CheckFlush tells whether what is written to w can be sent at once, as an
// [http.ResponseController] does it. The error is a [*BufferedError].
func CheckFlush(w http.ResponseWriter) error {
	w = innermost(w, func(w http.ResponseWriter) bool {
		switch w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			return true
		}
		return false
	})
	if w == nil {
		return nil
	}
	return &BufferedError{fmt.Sprintf("%T", w)}
}

// CheckHijack tells whether the connection of w can be taken over.
func CheckHijack(w http.ResponseWriter) error {
	w = innermost(w, func(w http.ResponseWriter) bool { _, ok := w.(http.Hijacker); return ok })
	if w == nil {
		return nil
	}
	return fmt.Errorf("a WebSocket cannot be opened on the http.ResponseWriter %T, which has neither Hijack nor Unwrap: if it is that of a middleware, add the method Unwrap() http.ResponseWriter to it; HTTP/2 has no WebSockets here", w)
}

// innermost returns the writer at which the way to one that fits ends, nil if one fits.
func innermost(w http.ResponseWriter, fits func(http.ResponseWriter) bool) http.ResponseWriter {
	for !fits(w) {
		on, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = on.Unwrap()
	}
	return nil
}
