// Package auth is about who is calling: it logs a client in at MCP servers that want it (OAuth
// 2.1), and lets a server know its callers.
//
// # Servers
//
// A [Guard] stands in front of a server over HTTP. Its verifiers ([JWT], [Introspection],
// [APIKeys], [Basic], [MTLS], or one of the program's own) know credentials; [From] tells a
// handler whose they are, and [Need] asks for scopes.
//
// # Clients
//
// A [Transport] is an http.RoundTripper for one server, to be put into the HTTPClient of
// an mcp.Client. When the server answers 401, or 403 with insufficient_scope, the
// Transport finds out who gives tokens for the server, logs in, and sends the request
// again. [Loopback] receives the user's browser when it comes back from that. A [Grant] is a
// way without one.
//
//	back, err := auth.NewLoopback(auth.OpenBrowser)
//	if err != nil {
//		return err
//	}
//	defer back.Close()
//	login := &auth.Transport{Server: url, RedirectURL: back.RedirectURL(), Visit: back.Visit}
//	client := &mcp.Client{Name: "mine", HTTPClient: &http.Client{Transport: login}}
//	session, err := client.Dial(ctx, url)
//
// A call waits while the user logs in, so mcp.Limits.CallTimeout must leave the time
// for it.
//
// # Guarantees
//
// As a client:
//
//   - A token is sent to the origin of its server and nowhere else, in the Authorization
//     header and nowhere else. It came from an authorization server which that server named.
//   - Client ids and secrets of a registration are kept by issuer, and used with no other.
//   - Every login has the resource parameter; one by browser has PKCE (S256), state, and a check
//     of iss.
//   - One login or refresh at a time: whoever needs a token meanwhile waits for it. A
//     refresh that was begun is finished, and its token kept, even if all callers leave.
//   - Only https is spoken, and http on loopback if the server itself is there. Metadata is
//     read up to 256 KiB and follows redirects within its origin alone. Without a Base of
//     the program's own, a name that leads to an address more private than the server's is
//     not connected to.
//   - No error and no log has a token, a code, a verifier or a secret in it.
//   - Tokens are kept in memory, or with a [Store] for later processes and other ones. Those that
//     share one refresh once for all; a new token is stored before it is used, and nothing is
//     deleted before the authorization server said that it is no good (invalid_grant). Tokens
//     that are bound to a key (DPoP) are kept in memory alone.
//
// As a server:
//
//   - Who has no credential, or a bad one, reaches nothing but metadata and preflights.
//   - Nothing is done with a credential over 16 KiB, with several at once, or in a query.
//   - A refusal does not say what is wrong; the log does, without the credential.
//   - Keys and passwords are kept as hashes and compared in constant time.
//   - What strangers send causes bounded work elsewhere: keys are looked for once a minute, 32
//     tokens are asked about at once, 4 passwords hashed.
//
// # Which specification
//
// The rules are those of 2025-11-25 and 2026-07-28, basic/authorization. A server without
// protected resource metadata is one of 2025-03-26, where the authorization server is the
// origin of the MCP server, and has default endpoints if it has no metadata.
package auth
