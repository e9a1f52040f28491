// Package sse is HTTP with server-sent events, the HTTP transport of revision
// 2024-11-05: one event stream from the server, and an address to which the client
// posts its messages. Both ends of a stream are a jsonrpc.Conn, to be served and
// driven like any other wire (package duplex).
//
// The transport is deprecated. It is here for peers that have no other one; they may
// speak any revision with initialize over it.
//
// # Guarantees
//
//   - The stream is the session: when it ends, on either side, so does the session,
//     and nothing takes it up again.
//   - A message is posted to the session that was opened by the same principal, or
//     it is as if there were no such session.
//   - A write to a client takes at most 30 seconds. A client that does not read loses
//     its stream, not the server its goroutine.
//   - A client posts to the origin of the stream and nowhere else.
package sse
