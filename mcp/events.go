package mcp

import (
	"context"

	"github.com/patchbay-dev/patchbay/internal/engine"
)

// EventStore keeps the events that legacy calls send on their streams ([HTTPConfig.Events]).
// Positions count from 1 within a stream and come in order; names of streams are unguessable. Its
// methods are used by several goroutines.
//
// Specification: 2025-11-25, basic/transports, Resumability and Redelivery.
type EventStore interface {
	// Append keeps an event. It must not retain event after it returns.
	Append(ctx context.Context, stream string, position int64, event []byte) error
	// After returns the events after a position, in order. The oldest may be missing if they are no
	// longer kept; that is not an error.
	After(ctx context.Context, stream string, position int64) ([][]byte, error)
	// Forget drops a stream. The stream may be unknown.
	Forget(ctx context.Context, stream string) error
}

// Detach lets the caller of ctx go on without waiting, for work that takes long. With
// [ToolExecution].OnDetach the call becomes a task if its caller accepts tasks. Otherwise, over
// HTTP, the connection that carries the call ends, and a client that speaks 2025-11-25 reconnects
// for the call's messages and its answer. In all other cases Detach does nothing.
//
// Specification: 2025-11-25, basic/transports, Sending Messages to the Server; extensions/tasks.
func Detach(ctx context.Context) {
	if c := engine.From(ctx); c != nil {
		c.Detach()
	}
}
