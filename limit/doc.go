// Package limit bounds how often callers may call, and how much at a time.
//
//	l := &limit.Limiter{
//		Caller: limit.Rate{Count: 100, Per: time.Second},
//		Tools:  map[string]limit.Rate{"search": {Count: 5, Per: time.Minute}},
//	}
//	srv.Use(l.Limit)
//	mux.Handle("/mcp", l.Protect(guard.Protect(srv)))
//
// A caller is the principal that was authenticated. Where nobody is, it is the address of an
// HTTP request that came through [Limiter.Protect], and else all callers are one.
//
// # Guarantees
//
//   - A request that is too many is not run. It is answered with a JSON-RPC error whose data
//     has retryAfter, in seconds; over HTTP with status 429 and Retry-After, if nothing was sent
//     yet. See [Error].
//   - Pings, cancellations and answers of sessions to questions do not count. What goes on with
//     something that was begun has room of its own: the retry of a call of 2026-07-28 with its
//     answers, and requests about tasks.
//   - What is known of callers is bounded: of those that were heard of last.
//
// Specification: 2026-07-28, server/tools and server/utilities/completion, Security
// Considerations.
package limit
