// Gateway measures what a call costs on its way through patchbay up, with none of the gateway's duties,
// with each of them, and with all:
//
//	go run ./bench/gateway                                  # about 4 minutes
//	go run ./bench/gateway -before v0.1.0                   # beside an older commit, or another program
//	go run ./bench/gateway -before v0.1.0 -only bare -rounds 40
//
// The duties are those of package setup: access tokens, a policy, an audit log with signed lines that
// are on disk before a call leaves, and spans and metrics for a collector. Counters are always on. The
// calls come over HTTP, revision 2026-07-28, from the raw clients of bench/load, and the server is that of
// bench/target, a command or, with -upstream http, a URL. "direct" is a call of the same server over
// HTTP, without the gateway. "pausing" is bare with clients that wait 0.3 ms between two calls, about as long as
// an audit log waits for a disk: a process that sleeps in between needs more CPU for the same work, as its code and data
// have left the caches of the processor, and on virtual machines to wake it costs too. "disk" is not a call: it writes a
// line and waits until it is on disk, as the audit log does for each call that comes alone; this CPU, which is the kernel's,
// is not in that of the gateway's process.
//
// CPU is the time of the gateway's process alone, for 1,000 calls. Each round starts every gateway anew
// and measures it after a warm-up, in an order that rotates, so that other load on the machine affects
// all alike. The table has the medians over the rounds, and after ± half the distance between the least
// and the greatest; the lines below it compare neighbours of the same round with the goals.
//
// The columns of audit lines and spans count what the duties have left behind in all calls, the warm-up
// included: a begin of each call, and two spans of each, without those that found the exporter's queue
// full.
//
// Process clocks need Linux. On other systems it says so and exits with status 64. It exits with 1 if
// a measurement failed, and with 0 if a goal was missed, as a busy machine misses some.
package main
