// Package config reads mcp.json, the file in which people list their servers,
// in the dialects that hosts use.
//
// Two shapes are read, {"mcpServers": {NAME: {...}}} and {"servers": {NAME:
// {...}}}, with comments and trailing commas. A server is one of
//
//	{"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}, "cwd": "dir"}
//	{"url": "https://example.com/mcp", "headers": {"K": "v"}}
//	{"builtin": "sqlite", "args": ["data.db"]}
//
// and any of them may have "type" or "transport" (stdio, http,
// streamable-http, sse) and "disabled". Members this package does not know
// are ignored; a known member that looks misspelt, or the word of another host
// for it, gives a warning.
//
// In command, args, env, cwd, url and headers these are replaced:
//
//	${NAME}  ${env:NAME}       the environment variable; it must be set
//	${NAME:-text}              the variable, or text if it is unset or empty
//	${userHome}                the home folder
//	${workspaceFolder}         the folder the file belongs to
//
// The rest of a value is kept as it is: $NAME is not replaced, and there is no
// way to write a literal ${. A replaced text is not looked at again.
//
// # Guarantees
//
//   - All faults of a file are reported at once, each with its line and
//     column, what is wrong, and the fix.
//   - No value of a variable, of env, headers, args or a URL appears in an
//     error or a warning.
//   - Nothing is started, fetched or written.
package config
