// Package issuer is an authorization server for MCP hosts where the identity provider registers no
// clients, as Entra, Okta and Google do not.
//
// An MCP host expects to register itself, or to name its metadata document. An identity provider
// expects clients that a person has registered. A [Server] stands between them: hosts register with
// it, people log in at the identity provider with the one client that is registered there, and
// hosts get tokens of the Server, whose audience is the MCP server.
//
//	people := &issuer.Server{
//		URL:      "https://mcp.example.com",
//		Resource: "https://mcp.example.com/mcp",
//		Provider: issuer.Provider{Issuer: "https://login.example.com", ClientID: "…", Secret: "…"},
//	}
//	guard := &auth.Guard{
//		Verifiers: []auth.Verifier{people.Verifier()},
//		Resource:  &auth.ResourceMetadata{Resource: people.Resource},
//	}
//	people.Handle(mux)
//	mux.Handle("/mcp", guard.Protect(srv))
//
// The client at the identity provider has the redirect URI that [Server.CallbackURL] returns.
//
// # Guarantees
//
//   - Before a person is sent to the identity provider, a page names the host and where its answer
//     goes, and the person agrees. That is remembered by browser, for one client and one https
//     redirect URI; a redirect to a program on the person's machine is asked about each time.
//   - An answer of the identity provider counts only in the browser that began the login, once, with
//     its state, its nonce and its issuer.
//   - Hosts never get a token of the identity provider. It is used to read the claims, and dropped.
//   - A token is for one resource: the MCP server, one below it, or one of [Server.Resources]. Claims of the person are copied
//     only if [Server.Claims] names them.
//   - A code is exchanged once, by its client, with PKCE (S256). A second exchange ends the login.
//   - A refresh token is used once. The second use ends the login, whichever of the two users is the
//     right one.
//   - [Server.EndLogins] ends the logins of a person at once.
//   - With [Server.State], codes and refresh tokens are used once over all nodes. A login that one node has ended
//     is refused by another as soon as it hears of that; while it is cut off, it hears nothing.
//   - Registrations take no memory: the client id is the registration, encrypted. All other tables
//     are bounded, and only people who have logged in fill them.
//   - No redirect leads to a client before a person has agreed: errors before that are pages.
//   - Metadata documents of clients are fetched from public addresses, with at most 8 KiB, within 5
//     seconds, without redirects, two at once from one host; of a Server on loopback, from loopback
//     too.
//
// # Which specification
//
// The rules are those of 2025-11-25 and 2026-07-28, basic/authorization, for authorization servers:
// OAuth 2.1, RFC 8414, RFC 7591, RFC 7009, RFC 8707, RFC 9207 and OAuth Client ID Metadata Documents.
// Toward the identity provider it is a client of OpenID Connect Core 1.0.
package issuer
