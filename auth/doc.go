// Package auth tells a server over HTTP who is calling.
//
// A [Guard] stands in front of a server. Its verifiers ([JWT], [Introspection], [APIKeys], [Basic],
// [MTLS], or one of the program's own) check the credential of each request. [From] returns the
// caller in a handler, and [RequireScopes] refuses a caller that lacks scopes.
//
//	guard := &auth.Guard{
//		Verifiers: []auth.Verifier{&auth.JWT{Issuer: "https://login.example.com"}},
//		Resource:  &auth.ResourceMetadata{Resource: "https://mcp.example.com/mcp"},
//	}
//	mux.Handle("/mcp", guard.Protect(srv))
//
// Package auth/login is for the other end: a client that logs in at such a server.
//
// # Guarantees
//
//   - A request without a credential, or with a bad one, reaches nothing but metadata and
//     preflights, unless the Guard is Anonymous.
//   - A credential over 16 KiB, several at once, or one in a query is refused unread.
//   - A refusal does not say what is wrong with a credential. The log does, without the credential.
//   - Keys and passwords are kept as hashes and compared in constant time.
//   - Requests from strangers cause bounded work elsewhere: the keys of an issuer are fetched once
//     a minute, 32 tokens are introspected at once, 4 passwords are hashed at once.
//   - An issuer cannot send the server to addresses further inside of the network than its own.
//
// # Which specification
//
// The rules are those of 2025-11-25 and 2026-07-28, basic/authorization, for resource servers.
package auth
