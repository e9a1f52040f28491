// Package mcptest tests servers, clients and handlers of package mcp: on every
// revision and every wire, in memory, without sleeping.
//
//	func TestGreet(t *testing.T) {
//		mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
//			got, err := mcp.CallAs[string](t.Context(), s, "greet", map[string]any{"name": "Ada"})
//			...
//		})
//	}
//
// [Connect] opens one session in memory, [Every] runs a test on all of them, [Context] and [Run]
// call a handler without any session, [Nodes] starts several servers behind one URL, [Golden]
// compares a session with a recorded trace, [Faults] damages a connection and [LeakCheck] finds
// leaked goroutines.
//
// Every frame of a session that this package opens is checked against the schema of its revision;
// an invalid one, from either side, fails the test. For the official extensions, and for methods
// with a vendor's domain such as "com.example/audit", only the envelope is checked.
//
// The package registers the test flags -mcptest.update and -mcptest.seed.
//
// # Guarantees
//
//   - Everything that a function of this package starts ends with its test, before the Cleanup
//     functions registered earlier.
//   - Connect, Context and Run start goroutines that wait only on channels, so they work inside a
//     testing/synctest bubble.
package mcptest
