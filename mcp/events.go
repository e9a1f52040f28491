package mcp

import (
	"context"

	"github.com/patchbay-dev/patchbay/internal/engine"
)

// EventStore keeps the events of the streams of legacy calls ([HTTPConfig.Events]).
// Positions count from 1 within a stream and come in order; names of streams are
// unguessable. Its methods are used by several goroutines.
//
// Specification: 2025-11-25, basic/transports, Resumability and Redelivery.
type EventStore interface {
	// Append keeps an event, whose bytes it may not hold on to.
	Append(ctx context.Context, stream string, position int64, event []byte) error
	// After returns the events behind a position, in order. Those that are no longer
	// kept are missing, oldest first; that is no error.
	After(ctx context.Context, stream string, position int64) ([][]byte, error)
	// Forget drops a stream, which may be unknown.
	Forget(ctx context.Context, stream string) error
}

// Release lets go of the caller of ctx, for work that takes long. With
// [ToolExecution].OnRelease the call of a caller who takes one becomes a task. Else, over
// HTTP, the connection that carries the call ends, and a client of 2025-11-25 comes back
// for what the call sends and for its answer. Everywhere else it does nothing.
//
// Specification: 2025-11-25, basic/transports, Sending Messages to the Server; extensions/tasks.
func Release(ctx context.Context) {
	if c := engine.From(ctx); c != nil {
		c.Release()
	}
}
