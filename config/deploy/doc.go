// Package deploy reads gateway.yaml, the file that describes one deployment of a gateway: its servers,
// its addresses, its callers, and the records it keeps.
//
//	servers: mcp.json
//	listen: {http: 0.0.0.0:8443, cert: tls.pem}
//	auth: ["jwt:https://idp.example,roles=groups"]
//	limits: [100/s, "tool:web_*=60/h"]
//	policy: policy.yaml
//
// Begin with [Load]. The package reads the file and checks its form: names of members, types, times,
// sizes, and which members need others. It opens no listener and starts nothing, and it does not look
// at what the values mean: addresses and ports, the elements of auth and limits (those of --auth and
// --limit of patchbay, which package deploy gives as text), and whether the named files can be used.
// "patchbay gateway check FILE" checks those too.
//
// # Guarantees
//
//   - All faults in the form of a file are reported at once, each with its line, its column and, where there is
//     one, its correction. A file with a fault gives no [File].
//   - A scalar may be written as {file: PATH}, for the content of another file without the newline at
//     its end, or contain ${NAME} or ${NAME:-default}, for a variable of the environment.
//   - File names are relative to the folder of the file; those in a [File] are absolute.
//   - Fields that the file leaves out have their defaults: no caller asks whether a value is zero.
//   - Faults and warnings do not show the values of variables, of named files, or of secrets.
//   - A file has at most 1 MiB, a file that a value names at most 64 KiB.
package deploy
