// Package load makes calls of MCP servers on the raw wire and measures what they cost: JSON-RPC
// lines on the standard streams of a process, HTTP/1.1 on a loopback socket. It uses no MCP
// library, so that it measures any server alike.
//
// # How it measures
//
//   - Cost is the CPU time of the server's process while it answered, from the process's own
//     clock. The time of this process is not in it, so how fast the load comes does not matter
//     much; a server is never measured while it starts.
//   - Every answer is checked: its id, that it is a result, and that its text is the one sent.
//     The first answer of a series is also decoded in full, so that what the cheap check takes
//     for granted is known to hold.
//   - Requests are prepared once. Only the digits of their ids change.
//
// Processes and their clocks need Linux; elsewhere the package has only the parts that read
// and count.
package load
