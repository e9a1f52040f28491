// Package middleware has small middleware for servers and clients, one line each.
//
//	srv.Use(middleware.Log(slog.Default()), middleware.MaxResult(1<<20))
//
// [Log] writes a line for each request, and [Observe] calls a function for each, for metrics and
// logs of another form. [MaxResult] refuses results that are too long, and [Retry] sends requests of a
// client again after transient errors. [Tools], [Prompts] and [Resources] rename, hide and reword what
// another server has. Package policy has the middleware for permissions, and package limit that for
// rates.
//
// # Guarantees
//
//   - Log and Observe never see a request that the server refuses before its middleware: one without
//     authentication, with invalid JSON, or for a method that the revision does not have.
//   - Arguments and results are never logged.
//   - Retry never sends a request again that may have run and may not run twice.
package middleware
