// Package websocket carries MCP over WebSocket (RFC 6455). It is a custom transport,
// which every revision allows (2026-07-28, basic/transports, Custom Transports), and no
// part of the specification. This is how it works (TRAN-26-004):
//
//   - The client opens with the subprotocol "mcp". A peer that does not negotiate one
//     is served as well.
//   - Each text message is one frame: a JSON-RPC message, or a batch of 2025-03-26. A
//     binary message ends the connection with status 1003.
//   - Both eras work as on stdio: 2026-07-28 with its metadata on every request, older
//     revisions after initialize. A request is cancelled by notifications/cancelled.
//   - The connection is the session: when it ends, so do both. The client ends it with
//     status 1000, a server that shuts down with 1001. Nothing takes it up again.
//
// Both ends of a connection are a jsonrpc.Conn, to be served and driven like any other
// wire (package duplex).
//
// # Guarantees
//
//   - A write takes at most 30 seconds. A peer that does not read loses its
//     connection, not the other side its goroutine.
//   - Each side pings a quiet peer, and gives up one that does not answer.
//   - Close returns at once. A peer that does not answer the closing handshake is cut
//     off after 250 milliseconds.
package websocket
