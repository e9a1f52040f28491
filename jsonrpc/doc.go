// Package jsonrpc is JSON-RPC 2.0: messages, ids and framing. It knows nothing
// of MCP.
//
// [Decode] reads one message and [DecodeBatch] an array of them, in one pass
// over the bytes that checks all of it. [AppendRequest], [AppendResult] and
// the other Append functions write messages. A [Conn] carries whole frames,
// each one message or one batch; [NewLineConn] and [Pipe] make one.
//
// # What is accepted
//
// Decode is exact, beyond what JSON-RPC asks: a message that two readers could
// understand in two ways is refused. See [Decode] for the list. Members that
// JSON-RPC does not know are ignored.
//
// # Guarantees
//
//   - Raw values of a decoded [Message] are sub-slices of the bytes decoded.
//     Whoever reuses those bytes calls [Message.Clone] first.
//   - Ids are compared by kind and value and never pass through float64.
//   - What the Append functions write holds no newline, whatever the raw
//     values hold, so it can be a line of the stdio transport.
//   - Text of the peer in errors is quoted and bounded in length.
package jsonrpc
