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
// [Connect] opens one session in memory, [Every] runs a test on all of them,
// [Context] and [Run] call a handler without any session, [Nodes] is a fleet behind one
// URL, [Golden] holds a session against a recorded trace, [Faults] damages a
// wire and [LeakCheck] finds goroutines that were left behind.
//
// Every frame of a session that this package opens is held against the schema of
// its revision; an invalid one, of either side, fails the test. Of the official
// extensions, and of methods that carry a vendor's domain such as "com.example/audit", the
// envelope is checked.
//
// The package registers the test flags -update and -mcptest.seed, so a test
// binary that uses it cannot define flags of these names.
//
// # Guarantees
//
//   - What a function of this package starts ends with the test that it was
//     given, and before the Cleanup functions registered earlier.
//   - Connect, Context and Run start goroutines that wait on channels alone, so
//     they work inside a testing/synctest bubble.
package mcptest
