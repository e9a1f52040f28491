// Nodes compares three gateways that are nodes of one cluster with three that know nothing of each other:
//
//	go run ./bench/nodes                # about 5 minutes
//	go run ./bench/nodes -rounds 21
//
// Both sides are processes of patchbay up on this machine, without further duties, in front of one server over HTTP, with the same
// number of clients from bench/load: of 2026-07-28, which has no sessions, and of 2025-11-25, whose sessions are at the nodes in turn.
// Each client makes one call after the other. Those of the separate gateways call at the gateway of their session. So do "sticky" clients
// of the cluster, as behind a balancer that keeps a caller at one node; those of "round robin" call at each node in turn, so that two of three
// calls are forwarded; and "forwarded" is one client that calls at another node than that of its session. Then a node is killed (SIGKILL),
// and clients of its sessions call at another one until they are answered.
//
// CPU is that of the three gateways together, NATS in them included, for 1,000 calls. Each round starts all gateways anew, and measures what is compared
// one right after the other, in an order that is turned round with each round. The table has the medians over the rounds, and after ± half the distance between the least and
// the greatest. Goals are compared within a round: "work" is what the cluster does in a second of CPU, divided by what the separate
// gateways do.
//
// Process clocks need Linux. On other systems it says so and exits with status 64. It exits with 1 if a measurement failed, and with 0 if
// a goal was missed, as a busy machine misses some.
package main
