// Package gateway offers many MCP servers as one: a Handler that routes to
// Handlers. [Gateway.Set] puts a handler behind it that is always there, such as a Server in
// this process. [Gateway.Run] keeps a server connected, and starts it when it is needed.
//
// Tools and prompts are named after their server: tool "query" of server "db" is
// "db_query"; see [Name]. Resources keep their URIs; where two servers have the same, the one
// whose name comes first has it. Everything else passes through as it is: schemas, results,
// members that this package does not know, questions, progress, log messages.
//
// # Guarantees
//
//   - The name of a feature depends on its own and its server's, and on no other server, no
//     order and no earlier run. It is known from the name alone which server is meant.
//   - What one principal was shown, began or was asked is never given to another, but for a list
//     that would have the same bytes. A connection for one client serves no other.
//   - What a server kept for a client, over a connection of the client's own, is not lost in
//     silence: if the connection ends, the next request of the client that may depend on it
//     fails once and says so. Only connections over which nothing but reads has happened make
//     room for others.
//   - A server that fails is missing from lists; the others are there. One that does not
//     answer delays one list for ListTimeout, and the next ones no more until it does.
//   - A call waits for a server that is starting, at most a minute. For one that is failing
//     it fails at once, and says why.
//   - A request goes to one upstream. A read of a URI that nobody lists is the exception: the
//     upstreams are tried in turn until one has it.
//   - What changes nothing is asked once more if the connection is lost meanwhile. A tool is
//     never called twice.
//   - A server is told that it may ask what those can answer for whom its connection is.
//   - Callers who listen are told when an upstream comes, goes or changes. What might have
//     been missed while it was away is told as a change. However many listen over one
//     connection, the server has one subscription.
//   - Run returns when all its connections are closed.
package gateway
