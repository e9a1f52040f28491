package inspector

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// Bounds of the requests that need much memory or time: forms, checks, and calls as text.
const (
	maxWorking = 4  // that are answered at the same time
	maxWaiting = 32 // that are read, wait, or are answered at the same time
)

// errGone ends the work for somebody who has gone.
var errGone = fail(http.StatusServiceUnavailable, "the request has ended")

// turns lets requests that need much memory or time take turns.
type turns struct{ all, work chan struct{} }

// answered makes a handler of a function that returns a document for a body of at most limit bytes. The body is read
// before the turn begins, so that a slow sender keeps nobody from work.
func (t turns) answered(limit int64, of func(ctx context.Context, body []byte) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case t.all <- struct{}{}:
			defer func() { <-t.all }()
		default:
			refuse(w, fail(http.StatusServiceUnavailable, "%d forms, checks and calls wait already; try again", maxWaiting))
			return
		}
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(pace))
		body, err := readAll(w, r, limit)
		if err != nil {
			refuse(w, err)
			return
		}
		_ = control.SetReadDeadline(time.Time{})
		select {
		case t.work <- struct{}{}:
			defer func() { <-t.work }()
		case <-r.Context().Done():
			refuse(w, errGone)
			return
		}
		answered(func(r *http.Request) (any, error) { return of(r.Context(), body) }).ServeHTTP(w, r)
	})
}

// readAll reads the body of a request.
func readAll(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, fail(http.StatusRequestEntityTooLarge, "the request has more than %d bytes", limit)
	case err != nil:
		return nil, fail(http.StatusBadRequest, "the request cannot be read: %v", err)
	}
	return body, nil
}

// decode decodes the body of a request.
func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fail(http.StatusBadRequest, "the request is not the expected JSON: %v", err)
	}
	return nil
}
