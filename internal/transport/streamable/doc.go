// Package streamable is the Streamable HTTP transport, server and client, for both
// eras of the protocol on one endpoint.
//
// # The server
//
// A request of the modern era (2026-07-28) is self-contained: it is served on its
// net/http goroutine from the first byte to the last, without a session. When the
// client leaves, the handler's context ends.
//
// A client of the legacy era (2025-03-26 to 2025-11-25, and 2024-11-05 if it asks
// for it here) opens a session with initialize. Its calls go on when their
// connection breaks; they end by notifications/cancelled, with the session, or by
// [Server.Shutdown].
//
// In both eras an answer is application/json, unless the handler sends something
// before it is done: then the response becomes an event stream.
//
// # Guarantees
//
//   - Messages of one call go on its own response and nowhere else, in the order
//     they were sent, the answer last.
//   - A message that belongs to no call goes on one GET stream of its session, the
//     newest. Without one up to 64 are kept and the rest dropped, oldest first; the
//     next stream gets them before what comes then.
//   - What a legacy call sends before its answer, and then the answer, is kept for a
//     client that comes back. An answer that is alone and whose connection is gone
//     is dropped.
//   - Every write to a client is bounded in time ([Server] says how long); a client
//     that does not read loses its response, not the server its goroutine.
//   - A session answers to the principal that opened it, and to others as if it
//     did not exist.
//
// # The client
//
// A [Client] is an engine.Wire. It learns the era of each request from what the
// request carries, and does not choose one.
package streamable
