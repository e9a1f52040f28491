// Package sse is HTTP with server-sent events, the HTTP transport of revision 2024-11-05: one
// event stream from the server, and an address to which the client posts its messages. Each end
// of a stream is a jsonrpc.Conn that package duplex serves or drives like any other.
//
// The transport is deprecated and serves peers that have no other; they may use any revision with
// initialize over it.
//
// # Guarantees
//
//   - The stream is the session: when it ends, on either side, the session ends and cannot be
//     resumed.
//   - A session accepts messages only from the principal that opened it; to others it does not
//     exist.
//   - A write to a client takes at most 30 seconds. A client that does not read loses its stream
//     and does not block a goroutine of the server.
//   - A client posts only to the origin of the stream.
package sse
