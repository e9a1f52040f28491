package mcp

import (
	"context"

	"github.com/patchbay-dev/patchbay/internal/engine"
)

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
