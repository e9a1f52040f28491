// Package login logs a client in at MCP servers over HTTP, with OAuth 2.1.
//
// A [Transport] is an http.RoundTripper for one server, to be put into the HTTPClient of an
// mcp.Client. When the server answers 401, or 403 with insufficient_scope, the Transport finds the
// authorization server, logs in, and sends the request again. [Loopback] receives the user's
// browser on its way back. A [Grant] is a way to log in without a browser here.
//
//	back, err := login.NewLoopback(login.OpenBrowser)
//	if err != nil {
//		return err
//	}
//	defer back.Close()
//	transport := &login.Transport{Server: url, RedirectURL: back.RedirectURL(), Visit: back.Visit}
//	client := &mcp.Client{Name: "mine", HTTPClient: &http.Client{Transport: transport}}
//	session, err := client.Dial(ctx, url)
//
// A call waits while the user logs in, so mcp.Limits.CallTimeout must leave the time for it.
//
// Package auth/vault keeps logins for later processes. Package auth is for the other end: a server
// that checks its callers.
//
// # Guarantees
//
//   - A token is sent to the origin of its server and nowhere else, in the Authorization header and
//     nowhere else. It came from an authorization server that this server named.
//   - Client ids and secrets of a registration are kept by issuer, and used with no other.
//   - Every login has the resource parameter. A login by browser has PKCE (S256), state, and a
//     check of iss.
//   - One login or refresh runs at a time; requests that need a token meanwhile wait for it. A
//     refresh that has begun is finished, and its token kept, even if all callers leave.
//   - Only https is spoken, and http on loopback if the server itself is there. Metadata is read up
//     to 256 KiB and follows redirects within its origin alone. Without a Base of the program's
//     own, an address further inside of the network than the server's is not connected to.
//   - No error and no log has a token, a code, a verifier or a secret in it.
//   - Tokens are kept in memory, or in a [Store] that later processes and other ones share. The
//     processes refresh once for all. A new token is stored before it is used. Apart from Logout,
//     nothing is deleted before the authorization server has refused it (invalid_grant). Tokens
//     that are bound to a key (DPoP) are kept in memory alone.
//
// # Which specification
//
// The rules are those of 2025-11-25 and 2026-07-28, basic/authorization, for clients. A server
// without protected resource metadata speaks 2025-03-26, where the authorization server is the
// origin of the MCP server, and has default endpoints if it has no metadata.
package login
