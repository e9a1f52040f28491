// Package jsonrpc is JSON-RPC 2.0: messages, ids and framing. It knows nothing about MCP.
//
// [Decode] reads one message and [DecodeBatch] an array of them, and check all of it in one pass.
// [AppendRequest], [AppendResult] and the other Append functions write messages. A [Conn] carries
// whole frames, each one message or one batch; [NewLineConn] and [Pipe] make one.
//
// # What is accepted
//
// Decode is stricter than JSON-RPC requires: it refuses a message that two readers could
// understand differently. See [Decode] for the list. Members that JSON-RPC does not know are
// ignored.
//
// # Guarantees
//
//   - Raw values of a decoded [Message] are sub-slices of the bytes decoded. Call [Message.Clone]
//     before reusing those bytes.
//   - Ids are compared by kind and value and never pass through float64.
//   - The output of the Append functions has no newline, whatever the raw values hold, so it can
//     be a line of the stdio transport.
//   - Text from the peer in errors is quoted and bounded in length.
package jsonrpc
