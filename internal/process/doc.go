// Package process checks the commands of an mcp.json before they start, decides which variables of the
// environment they get, and describes how they ended. Package launch starts them; the program uses
// the same rules to explain a command that fails.
package process
