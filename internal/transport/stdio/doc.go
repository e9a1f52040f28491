// Package stdio carries MCP over standard streams: those of this process when it
// serves, those of a child process when it is a client.
//
// # Guarantees
//
//   - A child ends with its parent: its standard input is closed, then its
//     process group is asked to terminate, then killed, all within [CloseTime]. On Linux
//     the kernel ends the child even if the parent is killed; on Windows a job object
//     does.
//   - While this process serves, os.Stdout is os.Stderr, so that a stray print does
//     not break the protocol (STDIO-26-002).
package stdio
