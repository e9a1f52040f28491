// Package hosts reads and writes the files in which other programs list their
// servers: Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Zed, goose, Codex
// and Gemini CLI.
//
// A server is taken over into the words of mcp.json that package config reads. What
// has no such word stays in it as it is, so that nothing is lost: a file that is read
// and written again says the same to its host. What a host does that Patchbay cannot
// do, and the other way round, is told in a note.
//
// # Guarantees
//
//   - Nothing is started, fetched or written, and no file is opened: the caller does.
//   - No value of env or headers appears in a note or an error.
package hosts
