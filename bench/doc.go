// Package bench holds benchmarks. It is not for import.
//
//   - The benchmarks beside this file measure one path each, within one process:
//     codec_test.go, schema_test.go, call_test.go (typed calls in memory, over pipes and over
//     HTTP), http_test.go (the server alone, in each mode of HTTP), client_test.go (the client
//     alone), list_test.go, notification_test.go, ask_test.go, session_test.go (memory).
//     go test -run ^$ -bench . ./bench
//   - budget_test.go bounds the allocations of the hot paths. It runs with the other tests.
//   - compare puts a server and a client built on Patchbay next to bare (no MCP library: the
//     physical limit) and to other libraries, as processes: go run ./bench/compare
//   - gateway measures what a call costs on its way through patchbay up, with and without the duties of
//     a team's gateway: go run ./bench/gateway
//   - nodes compares gateways that are one cluster with separate ones: go run ./bench/nodes
//   - oneshot measures the cost of a call with the program: go run ./bench/oneshot PATCHBAY
//   - host measures what somebody waits for at chat and run, and their memory: go run ./bench/host
//   - rude makes clients disconnect abruptly and kills the program, and checks that nothing is
//     left: go run ./bench/rude
//   - load is the raw-wire load generator of compare and gateway.
//   - target is Patchbay's side of compare; peers, a module of its own, has the others.
//
// docs/performance.md says how to read the results.
package bench
