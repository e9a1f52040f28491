// Package duplex serves and drives MCP over one ordered two-way wire: standard
// streams, memory, sockets. A wire is a jsonrpc.Conn; both eras may share it.
//
// # Guarantees
//
//   - Each request runs on a goroutine of its own; a slow one holds up no other.
//   - The messages of one request arrive in the order they were sent, its
//     response last. Nothing more is sent for a request that was cancelled.
//   - Serve, Close and Call return in bounded time once their end has come,
//     whatever handlers and peers do.
package duplex
