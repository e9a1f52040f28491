package mcp

import (
	"strconv"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// tap returns the tap for the frames of one connection, or nil if OnFrame is nil.
func (s *Server) tap(transport string) *engine.Tap {
	if s.OnFrame == nil {
		return nil
	}
	return newTap(s.userCode(), s.OnFrame, s.Watched, transport, &serverWires)
}

// recorder returns the recorder for the exchanges of an HTTP transport, which names its connections
// itself.
func (s *Server) recorder(transport string) *web.Recorder {
	if s.OnFrame == nil {
		return nil
	}
	return &web.Recorder{Tap: &engine.Tap{Transport: transport, Tell: containedTap(s.userCode(), s.OnFrame), Watched: s.Watched}}
}

// transportOf returns the transport of a wire that was opened elsewhere, for recordings.
func transportOf(conn jsonrpc.Conn) string {
	if named, ok := conn.(jsonrpc.NamedConn); ok {
		return named.Transport()
	}
	return "custom"
}

// serverWires counts the connections of all servers, since several may write into one recording.
var serverWires atomic.Int64

// newTap names the connection in its frames after the transport, with a number.
func newTap(user *usercode.Runner, on func(trace.Frame), watched *atomic.Bool, transport string, wires *atomic.Int64) *engine.Tap {
	conn := transport + "-" + strconv.FormatInt(wires.Add(1), 10)
	return &engine.Tap{Transport: transport, Conn: conn, Tell: containedTap(user, on), Watched: watched}
}
