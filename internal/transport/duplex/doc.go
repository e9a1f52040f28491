// Package duplex serves and drives MCP over one ordered two-way wire: standard
// streams, memory, sockets. A wire is a jsonrpc.Conn; both eras may share it.
//
// # Guarantees
//
//   - A request runs on the goroutine that has read it, but a slow one holds up no
//     other: another goroutine goes on reading in time (see read.go).
//   - The messages of one request arrive in the order they were sent, its
//     response last. Nothing more is sent for a request that was cancelled.
//   - Serve, Close and Call return in bounded time once their end has come,
//     whatever handlers and peers do.
package duplex
