// Package bridge calls one server, whatever revision it speaks, for callers of any revision.
//
// A [Remote] is the server at the far end of a wire. A [Call] is one request to it, over all its
// rounds of questions. [Remote.Forward] passes on a request of another caller, with the questions,
// the progress and the log messages that belong to it. Package mcp makes typed calls of this, as it
// makes a typed server of package engine, which has the other direction: requests that come in.
//
// Requests, results and questions are raw JSON in the inner form, the shape of revision 2026-07-28.
//
// # Guarantees
//
//   - A call ends with its context, at its limits, and when the Remote closes. A task that its
//     server has made of it is cancelled then.
//   - A question reaches the caller whose call has caused it, or it is refused. It never reaches
//     another principal.
//   - A result that is private to one caller is never kept for another.
//   - A request that has run at the server is not sent again.
//
// To begin, fill the fields of a Remote, give it a wire whose inbox it is, and call
// [Remote.Request], [Call.Begin] or [Remote.Forward].
package bridge
