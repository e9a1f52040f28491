package mcp

import (
	"context"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/transport/websocket"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// WebSocket returns a handler that serves MCP over WebSocket: a custom transport, which
// every revision allows. The subprotocol is "mcp", each text message is one JSON-RPC
// message, and both eras work as on stdio, with the connection as the session:
//
//	mux.Handle("/ws", srv.WebSocket()) // for clients of ws://127.0.0.1:7420/ws
//
// [HTTPConfig] applies as for Streamable HTTP; MaxSessions bounds the connections of each WebSocket
// handler, and KeepAlive is the time between pings. A message may have at most 4 MiB unless
// [Limits] says otherwise. Connections outlive http.Server.Shutdown; [Server.Shutdown] ends them,
// with status 1001.
//
// Specification: 2026-07-28, basic/transports, Custom Transports.
func (s *Server) WebSocket() http.Handler {
	return s.lazy(func() http.Handler {
		return &websocket.Server{
			Serve: func(ctx context.Context, conn jsonrpc.Conn, principal string) error {
				return s.serve(ctx, conn, engine.Caller{Principal: principal}, s.tap("websocket"))
			},
			Guard:      s.guard(),
			MaxMessage: int(s.http.MaxBody),
			MaxConns:   s.http.MaxSessions,
			KeepAlive:  s.http.KeepAlive,
			Principal:  s.principalOf,
			Drain:      s.stopped,
			Logger:     s.eng.Logger,
		}
	})
}

// dialWebSocket opens the wire of a ws or wss URL.
func (c *Client) dialWebSocket(ctx context.Context, address string, tap *engine.Tap) (jsonrpc.Conn, error) {
	return websocket.Dial(ctx, websocket.ClientOptions{URL: address, HTTP: c.HTTPClient, Header: c.Header, MaxMessage: c.Limits.Message, Tap: tap})
}
