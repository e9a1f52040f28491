// Package streamable is the Streamable HTTP transport, server and client, for both
// eras of the protocol on one endpoint.
//
// # The server
//
// A request of the modern era (2026-07-28) is self-contained: it is served on its net/http
// goroutine from the first byte to the last, without a session. When the client disconnects, the
// handler's context ends.
//
// A client of the legacy era (2025-03-26 to 2025-11-25, and 2024-11-05 if it requests it) opens a
// session with initialize. Its calls go on when their connection breaks; they end with
// notifications/cancelled, with the session, or with [Server.Shutdown].
//
// In both eras an answer is application/json, unless the handler sends a message before it
// returns: then the response becomes an event stream.
//
// # Guarantees
//
//   - Messages of one call go only to its own response, in the order they were sent, the answer
//     last.
//   - A message outside of calls goes to one GET stream of its session, the newest. Without a GET
//     stream up to 64 messages are kept, and older ones are dropped; the next stream gets them
//     before newer messages.
//   - The messages of a legacy call, and then its answer, are kept for a client that resumes the
//     stream. An answer without earlier messages is dropped if its connection is closed.
//   - Every write to a client is bounded in time ([Server] says how long); a client that does not
//     read loses its response and does not block a goroutine of the server.
//   - A session serves only the principal that opened it; to others it does not exist.
//
// # The client
//
// A [Client] is an engine.Wire. It recognizes the era of each request by its content, and does
// not choose one.
package streamable
