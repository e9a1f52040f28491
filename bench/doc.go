// Package bench holds what says how fast Patchbay is, and no code that anybody imports.
//
//   - The benchmarks beside this file measure one path each, within one process:
//     codec_test.go, schema_test.go, call_test.go (typed calls in memory, over pipes and over
//     HTTP), http_test.go (the server alone, in each mode of HTTP), client_test.go (the client
//     alone), list_test.go, notification_test.go, ask_test.go, session_test.go (memory).
//     go test -run ^$ -bench . ./bench
//   - budget_test.go bounds what the hot paths allocate. It runs with the other tests.
//   - compare puts a server and a client built on Patchbay next to bare (no MCP library: the
//     physical limit) and to other libraries, as processes: go run ./bench/compare
//   - oneshot measures what a call of the program costs: go run ./bench/oneshot PATCHBAY
//   - rude has clients leave in the middle of things and kills the program, and looks at what
//     that leaves: go run ./bench/rude
//   - load is the raw-wire load generator of compare.
//   - target is our side of compare, and peers, a module of its own, are the others.
//
// docs/performance.md says how to read the results.
package bench
