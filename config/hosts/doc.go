// Package hosts reads and writes the files in which other programs list their
// servers: Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Zed, goose, Codex
// and Gemini CLI.
//
// A server is converted to the members of mcp.json that package config reads. Other members are
// kept unchanged, so that a file that is read and written again means the same to its host. A
// note reports features of a host that Patchbay does not have, and the reverse.
//
// # Guarantees
//
//   - Nothing is started or fetched, and no file is opened or written: the caller does that.
//   - No value of env or headers appears in a note or an error.
package hosts
