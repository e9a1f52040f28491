package audit

import (
	"context"

	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// attempts takes note of the replicas to which one call goes. It is used by the goroutine of the call.
type attempts struct {
	h       *around
	r       *record
	begin   Entry // the line of the call
	nested  bool
	waits   bool // a line must stand before the call leaves
	replica string
}

var _ note.Attempts = (*attempts)(nil)

// Attempt notes the replica for the end of the call. A second replica, and each further one, has a line before the call
// leaves.
func (a *attempts) Attempt(ctx context.Context, replica string) error {
	first := a.replica == ""
	a.replica = replica
	server := a.server()
	a.r.mu.Lock()
	if !a.nested {
		a.r.entry.Server = server
	}
	a.r.mu.Unlock()
	if first {
		return nil
	}
	return a.retry(ctx, server)
}

// Again writes a line before the call leaves again.
func (a *attempts) Again(ctx context.Context) error { return a.retry(ctx, a.server()) }

// server describes the server with the replica.
func (a *attempts) server() *Server {
	var server Server
	if a.begin.Server != nil {
		server = *a.begin.Server
	}
	server.Replica = a.replica
	return &server
}

// retry writes a line before the call leaves again.
func (a *attempts) retry(ctx context.Context, server *Server) error {
	a.r.mu.Lock()
	a.r.begins++
	line := a.begin
	line.Kind, line.Attempt, line.Server = CallRetry, a.r.begins, server
	a.r.mu.Unlock()
	var err error
	if a.waits {
		err = a.h.trail.Log.Write(ctx, line)
	} else {
		err = a.h.trail.Log.tryAdd(line)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case a.h.trail.OnFailure == Refuse:
		return mcp.Errorf(jsonrpc.CodeInternal, "the call was not sent again, because its line of the audit log cannot be written (%v)", cause(err))
	}
	a.h.trail.Log.Add(line) // it is written as soon as that is possible
	return nil
}
