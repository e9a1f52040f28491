package mcp

import (
	"context"
	"fmt"
	"time"
)

// Limits bound the resources that the other side can use. Zero means the default. A negative value
// means no bound where the field says so.
type Limits struct {
	// Message bounds one incoming message in bytes. Zero: 4 MiB over HTTP, 16 MiB
	// on other transports.
	Message int

	// Depth bounds the nesting of JSON. Zero: 128.
	Depth int

	// Concurrent bounds the requests in progress on one connection, or over HTTP in one
	// session, and likewise the questions to its client. Zero: 1,000.
	Concurrent int

	// Rounds bounds the rounds of questions of one call. Zero: 16.
	Rounds int

	// PageSize is the number of features on a page of a list, fewer if the page would exceed 1 MiB.
	// Zero: 500.
	PageSize int

	// CallTimeout bounds a call. On a server the handler's context ends. On a client the call fails
	// with a [*LimitError] when no answer, progress, question or log message arrives for this time.
	// Negative: no bound. Zero: no bound on a server, 1 minute on a client, but 5 minutes for a
	// tool call that [Session.Handle] forwards.
	CallTimeout time.Duration

	// CallLimit bounds the total time of a client's call. Zero or negative: no bound. Neither
	// CallLimit nor CallTimeout counts the time in which a question from the server is answered or
	// a task is waited for.
	CallLimit time.Duration

	// Mute ends the session with a command ([Client.Start]) when this many consecutive calls have
	// reached a time limit without any message from the server. Only a call that began after the
	// one before had ended counts as the next. Zero: no bound.
	Mute int

	// Cache bounds, in bytes, the results that a client's session caches for as long as the server
	// allows. Zero: 4 MiB; negative: no cache.
	Cache int
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&l.Depth, 128)
	def(&l.Concurrent, 1000)
	def(&l.Rounds, 16)
	def(&l.PageSize, 500)
	def(&l.Cache, 4<<20)
	return l
}

// A LimitError says that a call reached a time limit and was given up. The server was notified, and
// a later answer is dropped. errors.Is treats it as context.DeadlineExceeded.
type LimitError struct {
	Limit time.Duration

	// Total reports whether the whole call took too long (Limits.CallLimit). Otherwise the server
	// sent nothing for too long (Limits.CallTimeout or IdleTimeout).
	Total bool
}

func (e *LimitError) Error() string {
	if e.Total {
		return fmt.Sprintf("the call took longer than %v (Limits.CallLimit)", e.Limit)
	}
	return fmt.Sprintf("the server sent nothing for %v (Limits.CallTimeout)", e.Limit)
}

func (e *LimitError) Unwrap() error { return context.DeadlineExceeded }
