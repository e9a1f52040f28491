// Package config reads and changes mcp.json, the file in which people list their
// servers, in the dialects that hosts use. The files of other hosts are the business
// of package hosts below it.
//
// Two shapes are read, {"mcpServers": {NAME: {...}}} and {"servers": {NAME:
// {...}}}, with comments and trailing commas. A server is one of
//
//	{"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}, "envFile": ".env", "cwd": "dir"}
//	{"url": "https://example.com/mcp", "headers": {"K": "v"}}
//	{"builtin": "sqlite", "args": ["data.db"]}
//
// and any of them may have "type" or "transport" (stdio, http,
// streamable-http, sse) and "disabled". Members this package does not know
// are ignored; a known member that looks misspelt, or the word of another host
// for it, gives a warning.
//
// What is Patchbay's own stands under "patchbay", in a server or at the top of the
// file, where no other host looks:
//
//	"patchbay": {"servers": {NAME: {"share": "shared", "idle": "10m"}}}
//
// So do language models, and which of them is to be used:
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
//	${input:ID}                what a person answers, or see [Input.EnvName]
//	${userHome}                the home folder
//	${workspaceFolder}         the folder the file belongs to
//	${workspaceFolderBasename} the last part of it
//	${pathSeparator}  ${/}     what stands between the parts of a path here
//
// The rest of a value is kept as it is: $NAME is not replaced, and there is no
// way to write a literal ${. A replaced text is not looked at again.
//
// Inputs are not asked for when a file is read: [Server.Resolve] and [Model.Resolve] put their
// values in place when a server is to be started, or a model to be asked.
//
// A [Document] changes a file: servers and models are added and removed in its text.
//
// # Guarantees
//
//   - All faults of a file are reported at once, each with its line and
//     column, what is wrong, and the fix.
//   - No value of a variable, an input, of env, headers, args or a URL appears in an
//     error or a warning.
//   - Nothing is started or fetched. Files are read: the one that is asked for, and
//     each "envFile" that it names. Only [Document.Save] writes.
package config
