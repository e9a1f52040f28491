package mcptest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Connect serves s in memory and opens a session of c with it in revision rev. Both end with the
// test, before the Cleanup functions registered earlier. A server and a client can be connected
// any number of times, one Connect after the other.
func Connect(t testing.TB, s *mcp.Server, c *mcp.Client, rev mcp.Revision) *mcp.Session {
	t.Helper()
	near, far := jsonrpc.Pipe()
	return connect(t, s, c, rev, near, far)
}

// connect opens a session over the two ends of a wire.
func connect(t testing.TB, s *mcp.Server, c *mcp.Client, rev mcp.Revision, near, far jsonrpc.Conn) *mcp.Session {
	t.Helper()
	serve(t, s, far)
	return open(t, c, rev, func(ctx context.Context) (*mcp.Session, error) { return c.Connect(ctx, Wire(near)) })
}

// serve serves one connection until the test ends.
func serve(t testing.TB, s *mcp.Server, conn jsonrpc.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(ctx, conn)
	}()
	t.Cleanup(func() {
		cancel()
		<-done // Serve is bounded in time
	})
}

// opening prevents two tests from configuring a client at the same time.
var opening sync.Mutex

// open opens a session in which c offers only rev and every frame is checked. It restores the
// fields of c before it returns.
func open(t testing.TB, c *mcp.Client, rev mcp.Revision, dial func(context.Context) (*mcp.Session, error)) *mcp.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	opening.Lock()
	revisions, onFrame := c.Revisions, c.OnFrame
	c.Revisions, c.OnFrame = []mcp.Revision{rev}, Check(t, rev, true, onFrame)
	s, err := dial(ctx)
	c.Revisions, c.OnFrame = revisions, onFrame
	opening.Unlock()
	if err != nil {
		t.Fatalf("open a session of %s: %v", rev, err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Wire is a transport that is one open connection, for [mcp.Client.Connect].
func Wire(conn jsonrpc.Conn) mcp.Transport { return wire{conn} }

type wire struct{ conn jsonrpc.Conn }

func (w wire) Connect(context.Context) (jsonrpc.Conn, error) { return w.conn, nil }
