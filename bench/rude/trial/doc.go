// Package trial tests that "patchbay up" leaves nothing behind when clients disconnect abruptly
// ([Disconnect]) and when it is killed at a random moment ([Kill]).
//
// The program is a process of its own with badly behaved servers: one that ignores both the end
// of its input and SIGTERM, one that leaves processes in its group, in a session of their own
// and as daemons, one that ends at once, one that is slow to start. All inherit an environment
// variable, by which remaining processes are found.
//
// Processes are found in /proc, so the trials need Linux.
package trial
