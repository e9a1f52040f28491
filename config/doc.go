// Package config reads and changes mcp.json, the file in which people list their servers, in the
// dialects that hosts use. Package hosts below it handles the files of other hosts.
//
// Two shapes are read, {"mcpServers": {NAME: {...}}} and {"servers": {NAME:
// {...}}}, with comments and trailing commas. "servers" and "inputs" may also be in a member
// "mcp", as in the settings of VS Code. A server is one of
//
//	{"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}, "envFile": ".env", "cwd": "dir"}
//	{"url": "https://example.com/mcp", "headers": {"K": "v"}}
//	{"builtin": "sqlite", "args": ["data.db"]}
//	{"openapi": "petstore.yaml", "credentials": {"api_key": "${KEY}"}, "headers": {"K": "v"}, "args": ["--base", "URL"]}
//
// and any of them may have "type" or "transport" (stdio, http,
// streamable-http, sse) and "disabled". A server with a URL may have "api_key", a Bearer token,
// and one with a command "dev" (see [Dev]).
// Members that this package does not know are in [File.Unread]; a member that looks misspelt, or
// the word of another host for a known one, gives a warning.
//
// Patchbay's own settings are under "patchbay", in a server or at the top of the file, which
// other hosts ignore:
//
//	"patchbay": {"servers": {NAME: {"share": "shared", "idle": "10m"}}}
//
// Language models, and the choice of one, are there too:
//
//	"patchbay": {"model": "fast", "models": {
//		"fast": {"provider": "openai", "name": "gpt-5-mini", "key": "${env:OPENAI_API_KEY}"}
//	}}
//
// In command, args, env, envFile, cwd, url and headers, and in baseUrl, key and headers of a
// model, these are replaced:
//
//	${NAME}  ${env:NAME}       the environment variable; it must be set
//	${NAME:-text}              the variable, or text if it is unset or empty
//	${input:ID} the answer of a person, or see [Input.EnvName]
//	${userHome}                the home folder
//	${workspaceFolder}         the folder the file belongs to
//	${workspaceFolderBasename} the last part of it
//	${pathSeparator} ${/} the path separator of this system
//
// The rest of a value is kept unchanged: $NAME is not replaced, and a literal ${ cannot be
// written. Replaced text is not expanded again.
//
// Reading a file does not ask for inputs: [Server.Resolve] and [Model.Resolve] insert their
// values before a server is started or a model is used.
//
// A [Document] changes a file: servers and models are added and removed in its text.
//
// # Guarantees
//
//   - All faults of a file are reported at once, each with its line, column and fix.
//   - No value of a variable, an input, of env, headers, args or a URL appears in an
//     error or a warning.
//   - Nothing is started or fetched. Only the given file and each "envFile" in it are read. Only
//     [Edit] writes.
package config
