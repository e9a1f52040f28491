// Package load calls MCP servers on the raw wire and measures the cost: JSON-RPC lines on the
// standard streams of a process, HTTP/1.1 on a loopback socket. It does not use an MCP library,
// so that it measures all servers alike.
//
// # Method
//
//   - Cost is the CPU time of the server's process while it answered, from the process's own
//     clock. It does not include this process, so the speed of the load matters little.
//     Start-up is never measured.
//   - Every answer is checked: its id, that it is a result, and that its text is the one sent.
//     The first answer of a series is also decoded in full, which verifies the assumptions of
//     the cheap check.
//   - Requests are prepared once. Only the digits of their ids change.
//
// Processes and their clocks need Linux; on other systems the package has only the parts that
// parse and calculate.
package load
