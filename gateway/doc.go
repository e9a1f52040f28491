// Package gateway offers many MCP servers as one: a Handler that routes requests to Handlers.
// [Gateway.Set] adds a handler that is always available, such as a Server in this process.
// [Gateway.Run] starts a server when it is needed and keeps it connected.
//
// Tools and prompts are named after their server: tool "query" of server "db" is "db_query", see
// [Name]. Resources keep their URIs; if two servers have the same URI, it belongs to the server
// whose name sorts first. Everything else passes through unchanged: schemas, results, members that
// this package does not know, questions, progress and log messages.
//
// # Guarantees
//
//   - The name of a feature depends only on its own name and that of its server, not on other
//     servers, their order or earlier runs. The name alone tells which server is meant.
//   - Content that one principal was shown, began or was asked is never given to another, except
//     for a list that would have the same bytes. A connection for one client serves no other
//     client.
//   - State that a server keeps for a client, over a connection of the client's own, is never lost
//     silently: if the connection ends, the next request from the client that may depend on the
//     state fails once and says so. Only connections that were used for nothing but reads make room
//     for others, except that a session gives way to another of its own principal after 2 quiet
//     minutes.
//   - A server that fails is missing from lists; the others are present. A server of Run that does
//     not answer delays a caller's list by at most a second, and not at all once ListTimeout has
//     passed, until it answers again. While it starts, the delay is at most 3 seconds.
//   - A call waits at most a minute for a server that is starting. If the server is failing, the
//     call fails at once and says why.
//   - A request goes to one upstream. The only exception is a read of a URI that nobody lists: the
//     gateway tries the upstreams in turn until one has it.
//   - A request that changes nothing is repeated once if the connection is lost. A call of a tool is
//     not, with two exceptions, both for tools that a trusted server declares safe to repeat: a call
//     with an idempotency key (see Source.Trusted), and a call that package spread repeats.
//   - A server may ask only what the clients of its connection can answer; the server learns what
//     that is when the connection opens.
//   - Callers who listen are told when an upstream appears, disappears or changes. Changes that may
//     have been missed during an interruption are reported as changes. The server has one
//     subscription per connection, however many callers listen.
//   - Run returns after all its connections are closed.
package gateway
