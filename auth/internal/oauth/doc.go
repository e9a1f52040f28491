// Package oauth holds the parts of OAuth that both ends of a login need: package auth, which checks
// the callers of a server, and package auth/login, which logs in as a client.
//
// A [Fetcher] reads documents and posts forms on behalf of one server: the MCP server that a client
// logs in at, or the issuer of the tokens that a server accepts. That server names the URLs, so it
// is assumed to be hostile.
//
// # Guarantees
//
//   - Only https is fetched, and http on loopback if the server itself is there ([CheckURL]).
//   - An address further inside than those of the server is not connected to. The check applies
//     to the dialled address, so a name cannot change between check and connection.
//   - A document has at most 256 KiB and one exchange takes at most 30 seconds. Redirects of a GET
//     are followed 3 times within the origin, those of a POST never.
//   - Text from others in errors is quoted and bounded. Errors never contain the body of an answer.
package oauth
