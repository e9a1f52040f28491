// Package metrics counts the calls that pass through a server or a gateway, and shows the counts: as
// a [Snapshot] for programs, and as text for Prometheus.
//
//	c := new(metrics.Counters)
//	srv.Use(c.Server("shop"))
//	http.Handle("/metrics", c)
//
// For a gateway, [Counters.Front] goes in front of the server that clients reach, and
// [Counters.Around] makes the [gateway.Gateway.Middleware]: it counts what callers get from each
// server, a policy included, and apart from that how long the server itself takes.
//
// Each call has one [Kind]: it succeeded, or failed in one of seven ways, or its caller canceled it.
//
// # Guarantees
//
//   - Counting takes no lock, does not wait, and allocates nothing for a name that is already known.
//   - Neither arguments and results nor the names of principals, sessions and resources are kept.
//     Names are those of configured servers, methods and listed tools. All other names count as
//     "other".
//   - Memory is bounded: 1,000 servers, 1,000 tools of a server, 10,000 tools in total. A tool takes
//     5 KB, and up to 34 KB while it is called all the time. A server with calls takes 10 KB more for
//     its last 60 minutes and 24 hours. Counts of a removed server stay until the process ends.
//   - Quantiles are at most 7 % away from a duration that was measured, between 1 µs and 73 minutes.
//   - The counts of all kinds add up to the number of calls.
//
// [gateway.Gateway.Middleware]: https://pkg.go.dev/github.com/patchbay-dev/patchbay/gateway#Gateway
package metrics
