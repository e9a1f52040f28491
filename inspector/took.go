package inspector

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// tookWriter tells the browser how long the program took for an answer: in the header Server-Timing or, at the end of a
// stream of events, in a comment. A browser that measures itself adds the time until its own threads were free. The time
// that a person takes for an answer does not count: each round of a call is a request of its own.
type tookWriter struct {
	http.ResponseWriter
	began  time.Time
	header bool
	stream bool
}

func (w *tookWriter) ms() string {
	return strconv.FormatFloat(float64(time.Since(w.began).Microseconds())/1000, 'f', 3, 64)
}

func (w *tookWriter) WriteHeader(status int) {
	if !w.header {
		w.header = true
		if w.stream = strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"); !w.stream {
			w.Header().Set("Server-Timing", "total;dur="+w.ms())
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *tookWriter) Write(b []byte) (int, error) {
	if !w.header {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// end ends a stream.
func (w *tookWriter) end() {
	if w.stream {
		_, _ = w.ResponseWriter.Write([]byte(": took " + w.ms() + "\n\n")) // the browser may have gone
	}
}

// Unwrap is for http.ResponseController.
func (w *tookWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
