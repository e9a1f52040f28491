// Package trial tests that "patchbay up" leaves nothing behind when clients disconnect abruptly
// ([Disconnect]) and when it is killed at a random moment ([Kill]).
//
// The program runs as a process of its own, with badly behaved servers: one ignores both the end of
// its input and SIGTERM, one leaves processes in its group, in a session of their own and as
// daemons, one ends at once, one is slow to start. All inherit an environment variable, by which
// the tests find processes that are left.
//
// The tests read /proc and therefore need Linux.
package trial
