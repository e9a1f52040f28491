package web

import (
	"fmt"
	"net/http"
)

// BufferedError reports that an event stream cannot be sent, because middleware buffers the
// response until the handler returns.
type BufferedError struct {
	Writer string // Go type of the buffering http.ResponseWriter
}

func (e *BufferedError) Error() string {
	return "event streams do not work behind a middleware whose ResponseWriter, here " + e.Writer +
		", has neither Flush nor Unwrap: add the method Unwrap() http.ResponseWriter to it, or serve this handler without it (http.TimeoutHandler has neither)"
}

// CheckFlush checks that w can be flushed, as an [http.ResponseController] does. The error is a
// [*BufferedError].
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

// CheckHijack checks that the connection of w can be hijacked.
func CheckHijack(w http.ResponseWriter) error {
	w = innermost(w, func(w http.ResponseWriter) bool { _, ok := w.(http.Hijacker); return ok })
	if w == nil {
		return nil
	}
	return fmt.Errorf("a WebSocket cannot be opened on the http.ResponseWriter %T, which has neither Hijack nor Unwrap: if it is that of a middleware, add the method Unwrap() http.ResponseWriter to it; HTTP/2 has no WebSockets here", w)
}

// innermost unwraps w and returns the innermost writer, or nil if one of the writers fits.
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
