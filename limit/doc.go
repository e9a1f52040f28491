// Package limit is a rate limit for callers, and a bound for their concurrent requests.
//
//	l := &limit.Limiter{
//		Caller: limit.Rate{Count: 100, Per: time.Second},
//		Tools:  map[string]limit.Rate{"search": {Count: 5, Per: time.Minute}},
//	}
//	srv.Use(l.Limit)
//	mux.Handle("/mcp", l.Protect(guard.Protect(srv)))
//
// A caller is the authenticated principal. Without one, it is the address of an HTTP request that
// came through [Limiter.Protect]; all other requests count as one caller.
//
// # Guarantees
//
//   - A request over a limit does not run. It is answered with a JSON-RPC error whose data has
//     retryAfter, in seconds; over HTTP with status 429 and Retry-After, if the response has not
//     begun. See [Error].
//   - Pings, cancellations and answers of sessions to questions do not count. Follow-up requests
//     have a limit of their own: the retry of a 2026-07-28 call with the answers to its questions,
//     and requests about tasks.
//   - Several processes can have the limits together: see [Group].
//   - Memory is bounded: only the most recent callers are kept.
//
// Specification: 2026-07-28, server/tools and server/utilities/completion, Security
// Considerations.
package limit
