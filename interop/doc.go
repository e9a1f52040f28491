// Package interop tests that Patchbay works with software written by others: SDKs, servers,
// clients, conformance suites, an authorization server. It has tests only; package telemetry has
// middleware to copy, package ports programs that others wrote, ported, and package collector sends
// telemetry to a real OpenTelemetry collector, which .ci/long tests.
//
// Each peer, ours or foreign, is a program that can be a server and a client. All servers have the
// same features: a tool that echoes, one that asks the user, one that asks twice, one that asks the
// model, one that reports progress and logs, one that changes the tool list, one that waits until
// it is cancelled, a resource, a resource template and a prompt. A client uses every feature of a
// server and prints what it got as a [report]. The matrix pairs each client with each server, on
// stdio and on Streamable HTTP, in each revision that both speak. All must report the same.
//
// The Go peers live in this package and run as children of the test binary ("serve NAME WIRE"). The
// TypeScript peers are npm/peers/*.mjs. The folder npm also pins the versions of the reference
// servers, the inspector and the conformance suite, which run against the patchbay program.
//
// Logging in is tested with a real authorization server, oidc-provider from npm
// (npm/peers/idp.mjs), and its own pages: a test signs in there in headless Chromium, and agrees or
// refuses. That server passes the conformance suite for authorization servers.
//
// Outside the matrix, package schema is tested with the JSON-Schema-Test-Suite.
//
// To set up, run "npm ci" in npm. A test that needs Node, this set-up or Chromium is skipped if one
// of them is missing, unless PATCHBAY_INTEROP=required is set.
package interop
