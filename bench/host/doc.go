// Command host measures what somebody waits for at "patchbay chat" and "patchbay run", and what they
// take: the time from the start to the first request to the model, the time from the first token that
// the model's server sends until it is shown, and memory.
//
//	go run ./bench/host
//
// The model's server and the MCP servers are this program itself, on the loopback address. A terminal
// is a pseudo terminal of 80 columns and 24 lines.
package main
