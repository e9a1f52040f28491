// Package telemetry makes spans of OpenTelemetry for the requests of servers and clients. One line
// each is enough:
//
//	srv.Use(telemetry.Server(nil))    // an mcp.Server
//	client.Use(telemetry.Client(nil)) // an mcp.Client
//
// The spans go to the global provider of package otel, or to [Options.Provider]. Package
// telemetry/otlp sends them to a collector. [LogHandler] adds the ids of the span to the records of
// log/slog.
//
// # Guarantees
//
//   - Each request has a span on every revision: of kind SERVER in a server, of kind CLIENT in a
//     client or in front of a server of a gateway. A client has none for the requests that its
//     middleware does not see: those that open a session, and resources/subscribe for a subscription
//     before 2026-07-28. Each round of a call that asks questions
//     (2026-07-28) is a request of its own, and its span has the event "mcp.question".
//   - The spans of a call form one tree through any number of gateways. A server takes the parent
//     from traceparent in _meta (SEP-414); if there is none, from the context and then from the HTTP
//     header. A client takes it from the context and then from _meta, and writes traceparent of its
//     own span to _meta.
//   - A trace context that does not have the W3C form is ignored. It never fails a request.
//   - A tool that fails (isError) has error.type "tool_error", a time limit "deadline", and a JSON-RPC
//     error has its code. A client that has no answer has no code.
//   - Arguments, results, URIs and the texts of errors are recorded only with [Options.Content], and
//     redacted. Principals, credentials and session ids are never recorded; a session has a digest.
//   - Texts that callers choose are cut at 200 bytes, and a name that the server refuses as invalid
//     is not part of the name of a span.
//   - A panic ends the span and goes on. A panic of a span processor, or of a function of Options, is
//     given to otel.Handle, the first of each middleware, and the request goes on.
//
// The package uses the API of OpenTelemetry alone. The SDK is linked only by a program that imports
// it, for instance through telemetry/otlp.
package telemetry
