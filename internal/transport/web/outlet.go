package web

import (
	"errors"
	"net/http"
	"time"
)

const (
	// WriteTimeout bounds one write to a client.
	WriteTimeout = 30 * time.Second
	// WholeBytes is the size of an answer that net/http sends in one piece with its header, when the handler has returned.
	WholeBytes = 2 << 10
)

// An Outlet sends the body of an answer that a handler passes on. Each write to the connection may take [WriteTimeout]. An answer that is not flushed and
// has at most [WholeBytes] is written by net/http, and the WriteTimeout of the http.Server bounds that.
type Outlet struct {
	w       http.ResponseWriter
	control *http.ResponseController
	size    int
	bounded bool // the connection has a deadline
}

// NewOutlet returns one. End must follow, unless Write or Flush have failed: then the connection is to be closed.
func NewOutlet(w http.ResponseWriter) *Outlet {
	return &Outlet{w: w, control: http.NewResponseController(w)}
}

// Write implements [io.Writer].
func (o *Outlet) Write(b []byte) (int, error) {
	if o.size += len(b); o.bounded || o.size > WholeBytes {
		o.bound()
	}
	return o.w.Write(b)
}

// Flush sends what net/http has buffered. A writer that cannot do that is not a connection.
func (o *Outlet) Flush() error {
	o.bound()
	if err := o.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// End sends what is left, and removes the deadline: the connection may go on with other requests, of other handlers too.
func (o *Outlet) End() error {
	if !o.bounded {
		return nil
	}
	err := o.Flush()
	_ = o.control.SetWriteDeadline(time.Time{})
	return err
}

// bound gives the next write its time. A writer without deadlines is not a connection and needs no bound.
func (o *Outlet) bound() {
	_ = o.control.SetWriteDeadline(time.Now().Add(WriteTimeout))
	o.bounded = true
}
