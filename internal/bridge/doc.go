// Package bridge calls one server, whatever revision it speaks, for callers of any revision.
//
// A [Remote] is the server at the far end of a wire. A [Call] is one request to it, over all its
// rounds of questions. [Remote.Forward] passes on a request from another caller, with its
// questions, progress and log messages. Package mcp builds typed calls on this package, and a typed
// server on package engine, which handles the other direction: incoming requests.
//
// Requests, results and questions are raw JSON in the inner form, that of revision 2026-07-28.
//
// # Guarantees
//
//   - A call ends with its context, at its limits, and when the Remote closes. A task that its
//     server has made of it is then cancelled.
//   - A question reaches the caller of the call that caused it, or it is refused. It never
//     reaches another principal.
//   - A result that is private to one caller is never cached for another.
//   - A request that has run at the server is not sent again.
//
// To begin, fill in the fields of a Remote, give it a wire whose inbox is the Remote, and call
// [Remote.Request], [Call.Begin] or [Remote.Forward].
package bridge
