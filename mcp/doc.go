// Package mcp is the Model Context Protocol for Go: servers made of plain
// functions, and clients that drive any server, on all five revisions and every
// transport with the same code.
//
// Everything is a [Handler], the way everything is an http.Handler in net/http.
// A [Server] answers requests from its registry of tools, prompts and resources. A
// [Session], our end of a connection to a remote server, answers them by
// forwarding. A [Middleware] turns one Handler into another.
//
// A server is three statements:
//
//	srv := &mcp.Server{Name: "calc", Version: "1.0.0"}
//	mcp.AddTool(srv, mcp.Tool{Name: "add", Description: "Add two numbers"}, add)
//	err := srv.ServeStdio(context.Background()) // or: http.Handle("/mcp", srv)
//
// A client is two:
//
//	s, err := client.Dial(ctx, "http://127.0.0.1:7420/mcp") // or Start, with an exec.Cmd
//	res, err := s.CallTool(ctx, "add", map[string]any{"a": 1, "b": 2})
//
// [Client.Open] does the same with a Handler of this process, and [Client.Use] puts middleware
// around a client's requests, as [Server.Use] does for a server.
//
// # Revisions
//
// Public types do not depend on a revision. The package works in the form of 2026-07-28; one table
// per older revision converts at the edge of a connection. [CallFrom] gives a handler the revision
// of its caller.
//
// # Asking
//
// Five functions ask the user from inside a handler:
//
//   - [Confirm]: a yes-or-no question.
//   - [Elicit]: a form that is a Go struct.
//   - [ElicitForm]: a form whose schema is known only at run time.
//   - [ElicitURL]: a page to visit. The handler goes on when the user agrees to open it.
//   - [RequireURL]: a page to visit before the call can work. It ends the call, and the client calls
//     again after the visit.
//
// [Sample] asks the model of the caller, and [Roots] asks for the folders it works on.
//
// Up to 2025-11-25 the question travels as a request from the server, and the handler waits. In
// 2026-07-28 it travels in the result: the handler returns the error it got, and runs again from the
// top when the answer has come. Code between two questions therefore runs once per round; [Once]
// runs a function once per call.
//
// # Guarantees
//
//   - A panic in a handler, in middleware, in a store or in another function of the program fails
//     only the operation that called it: a call is answered with an internal error. The same holds
//     for runtime.Goexit, for an error that cannot be used, such as a nil [*Error], and for a
//     result that is not valid JSON (see [RawResult] for where it is checked). Middleware gets the error, except for faults that are found
//     only when the result is encoded. Value and stack go to [Server.OnPanic], else to the Logger,
//     else to standard error. A stack overflow and a concurrent write to a map end the process.
//   - Notifications of a call arrive before its answer, in the order they were sent.
//   - A client sends nothing for a context that has ended: the call fails with the cause of the context.
//   - A handler's context ends when the caller cancels, its connection closes,
//     the server shuts down or [Limits.CallTimeout] passes; context.Cause says which.
//   - Every Close and Shutdown is bounded in time.
//   - A Server, a Session and a Client may be used by several goroutines at once.
package mcp
