// Package duplex implements the server and the client of MCP over one ordered two-way connection,
// such as standard streams, memory or a socket. The connection is a jsonrpc.Conn; both eras may
// share it.
//
// # Guarantees
//
//   - A request runs on the goroutine that has read it, but a slow one does not delay others:
//     another goroutine takes over the reading (see read.go).
//   - The messages of one request arrive in the order they were sent, its response last. Nothing
//     is sent for a request after it was cancelled.
//   - Serve, Close and Call return in bounded time after the connection or their context ends,
//     whatever handlers and peers do.
package duplex
