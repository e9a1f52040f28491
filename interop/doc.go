// Package interop proves Patchbay against software that others wrote. It has
// tests only.
//
// Every peer, ours and foreign, is a server and a client that know the same
// small world: a tool that echoes, one that asks the user, one that asks twice,
// one that asks the model, one that reports progress and logs, one that changes the tool list,
// one that waits until it is cancelled, a resource, a resource template and a
// prompt. A client asks a server everything and answers with a [report]; the
// matrix joins each pair on stdio and on Streamable HTTP, in each revision
// both speak, and wants the same report from all of them.
//
// The Go peers live in this package and serve as children of the test binary
// ("serve NAME WIRE"); the TypeScript peers are npm/peers/*.mjs. The same
// folder pins the reference servers, the inspector and the conformance suite,
// which run against the patchbay program.
//
// Logging in is tested against a real authorization server, oidc-provider on npm
// (npm/peers/idp.mjs), with its own pages: a person in headless Chromium signs in
// there and agrees, or does not. That server passes the suite for authorization servers.
//
// Beside the matrix, schemas are held against the JSON-Schema-Test-Suite.
//
// Set up with "npm ci" in npm. Without Node, that set-up or Chromium the tests that need
// them are skipped, unless PATCHBAY_INTEROP=required is set.
package interop
