// Package websocket carries MCP over WebSocket (RFC 6455). It is a custom transport, which every
// revision allows (2026-07-28, basic/transports, Custom Transports), and not part of the
// specification. It works as follows (TRAN-26-004):
//
//   - The client opens with the subprotocol "mcp". A peer that does not negotiate one
//     is served as well.
//   - Each text message is one frame: a JSON-RPC message, or a batch of 2025-03-26. A
//     binary message ends the connection with status 1003.
//   - Both eras work as on stdio: 2026-07-28 with its metadata on every request, older revisions
//     after initialize. A request is cancelled with notifications/cancelled.
//   - The connection is the session: when one ends, so does the other, and it cannot be resumed.
//     The client closes with status 1000, a server that shuts down with 1001.
//
// Each end of a connection is a jsonrpc.Conn that package duplex serves or drives like any other.
//
// # Guarantees
//
//   - A write takes at most 30 seconds. A peer that does not read loses its connection and does
//     not block a goroutine of the other side.
//   - Each side pings a quiet peer, and disconnects one that does not answer.
//   - Close returns at once. A peer that does not answer the closing handshake is disconnected
//     after 250 milliseconds.
package websocket
