package mcp

import (
	"context"
	"fmt"
	"time"
)

// Limits bound what the other side can cause. Zero means the default, a negative
// value no bound where that is said.
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

	// PageSize is the number of features on a page of a list, fewer if they would be more
	// than 1 MiB. Zero: 500.
	PageSize int

	// CallTimeout bounds a call. A server's handler sees its context end. A client's call
	// fails with a [*LimitError] when nothing was heard of it for so long: no answer, progress,
	// question or log message. Negative: no bound. Zero: none for a server; 1 minute for a
	// client, but 5 for a call of a tool that [Session.Handle] forwards.
	CallTimeout time.Duration

	// CallLimit bounds a client's call however much is heard of it. Zero or negative: it does
	// not. Neither it nor CallTimeout counts the time in which a question of the server is
	// answered, or a task is waited for.
	CallLimit time.Duration

	// Mute ends the session with a command that a client has started ([Client.Start]) when so many
	// calls in a row, each begun after the one before had ended, reached a limit and nothing at
	// all was heard of the server meanwhile. Zero: none are too many.
	Mute int

	// Cache bounds, in bytes, the results that a client's session keeps for as long as
	// the server says they are good. Zero: 4 MiB; negative: none is kept.
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

// A LimitError says that a call was given up as its time was over. The server was told, and what
// it answers later is dropped. It is context.DeadlineExceeded to errors.Is.
type LimitError struct {
	Limit time.Duration

	// Total tells that the whole call took so long (Limits.CallLimit). Otherwise nothing was heard
	// of it for so long (Limits.CallTimeout or IdleTimeout).
	Total bool
}

func (e *LimitError) Error() string {
	if e.Total {
		return fmt.Sprintf("the call took longer than %v (Limits.CallLimit)", e.Limit)
	}
	return fmt.Sprintf("the server said nothing for %v (Limits.CallTimeout)", e.Limit)
}

func (e *LimitError) Unwrap() error { return context.DeadlineExceeded }
