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
	_, flushes := As[http.Flusher](w)
	if !flushes {
		_, flushes = As[interface{ FlushError() error }](w)
	}
	if flushes {
		return nil
	}
	return &BufferedError{fmt.Sprintf("%T", innermost(w))}
}

// CheckHijack checks that the connection of w can be hijacked.
func CheckHijack(w http.ResponseWriter) error {
	if _, hijacks := As[http.Hijacker](w); hijacks {
		return nil
	}
	return fmt.Errorf("a WebSocket cannot be opened on the http.ResponseWriter %T, which has neither Hijack nor Unwrap: if it is that of a middleware, add the method Unwrap() http.ResponseWriter to it; HTTP/2 has no WebSockets here", innermost(w))
}

// wrapper is an [http.ResponseWriter] in front of another one.
type wrapper interface{ Unwrap() http.ResponseWriter }

// As returns the first that is a T, of w and the writers that it wraps, as [http.ResponseController] finds what a writer can do.
func As[T any](w http.ResponseWriter) (t T, ok bool) {
	for {
		if t, ok = w.(T); ok {
			return t, true
		}
		on, wraps := w.(wrapper)
		if !wraps {
			return t, false
		}
		w = on.Unwrap()
	}
}

// innermost returns the last of w and the writers that it wraps.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		on, wraps := w.(wrapper)
		if !wraps {
			return w
		}
		w = on.Unwrap()
	}
}
