// Package gateway offers many MCP servers as one: a Handler that routes to
// Handlers. An upstream is anything that handles requests, a Session with a remote
// server or a Server in this process.
//
// Tools and prompts are named after their server: tool "query" of server "db" is
// "db_query". Resources keep their URIs; where two servers have the same, the one
// that was added first has it. Everything else passes through as it is: schemas, results,
// members that this package does not know, questions, progress, log messages.
//
// # Guarantees
//
//   - An upstream that fails, or does not answer in time, is missing from a list;
//     the others are there.
//   - A request goes to one upstream and is never sent twice. The exception is a read of
//     a URI that nobody lists: the upstreams are tried in turn until one has it.
//   - Callers who listen are told when an upstream comes, goes or changes.
package gateway
