// Package trace reads and writes recorded frames of the wire, in one format for the recorder, the
// inspector, the gateway's flight record, replay and golden tests.
//
// A frame is one recorded unit: a JSON-RPC message or batch as it was on the wire, or an HTTP
// exchange without a message. A trace is JSON lines, one frame each, in the order the recorder
// saw them:
//
//	{"dir":"in","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}
//	{"dir":"out","time":"2026-07-28T09:30:00.000000001Z","conn":"c1","msg":{"jsonrpc":"2.0","id":1,"result":{}}}
//
// The members of a line, in the order they are written:
//
//	dir     "in" or "out", seen from the recorder; required
//	time    when, RFC 3339 with nanoseconds
//	kind    what the frame is, if no message: see [Kind]
//	conn    which connection, any name
//	transport  "stdio", "http" and so on: see [Frame]
//	for     the request at a gateway that caused the frame, {"conn","id"}: see [Cause]
//	lost    how many frames were dropped just before this one
//	size    bytes on the wire, before redaction and cut
//	cut     minimum number of bytes left out at the end
//	event   id of the server-sent event that carried the message
//	note    text about kind
//	args    command line of a child process
//	http    {"exchange","method","path","status","headers"}, each optional; a
//	        header is a name with a list of values
//	msg     the message, if the bytes are JSON
//	raw     the bytes as a string, if they are UTF-8 but not JSON
//	base64  the bytes in base64, if they are not UTF-8
//
// A later format will have the member "v", its version, in each line; a line without it has
// version 1. A reader refuses a version that it does not know.
//
// At most one of msg, raw and base64 is present, and at least one of them,
// http or kind. A reader ignores members it does not know.
//
// The recorder sees bytes, not objects. The text of numbers and strings, the order of members,
// duplicate names and unknown members of a message are kept; white space between tokens is
// dropped where it would break the line.
//
// # Frames of a gateway
//
// A gateway records its connections to clients and to servers. The member "for" of a frame to or
// from a server is the connection and the JSON-RPC id of the client's request that caused it:
//
//	{"dir":"out","conn":"shop/stdio-1","for":{"conn":"http-4","id":7},"msg":{"jsonrpc":"2.0","id":12,"method":"tools/call"}}
//
// These frames have it: requests to the server, their answers, progress and log messages,
// questions of the server and the answers to them, cancellations, HTTP exchanges, and the start
// and the end of a connection or process that the request opened. A frame that no request, or one
// of several, can have caused does not have it: for example a change of a list, or a question on
// a pipe while several callers have calls in progress. A batch has it if all its messages have the
// same cause. If a caller of 2026-07-28 returns with an answer, frames of the server's open call
// keep the id of the first request.
//
// # Guarantees
//
//   - A [Writer] redacts every frame before it leaves the process; see [Redactor] for its rules
//     and limits.
//   - [Writer.Record] may be called from any goroutine and waits at most [WriterOptions.MaxWait].
//     When the sink is slower than the wire, frames are dropped and counted, and "lost" marks the
//     gap in the trace.
//   - When the sink fails, nothing more is written; missing frames are counted, and
//     [WriterOptions.OnFault] is called once.
//   - Frames are written in the order in which Record queued them.
//   - [Read] bounds the length of a line, reports a bad line with its number
//     and goes on with the next.
package trace
