// Package trial treats a running "patchbay up" badly and looks at what that leaves behind:
// clients that go away in the middle of things ([Disconnect]), and a program that is killed
// at a random moment ([Kill]).
//
// The program is a process of its own, behind which are servers that are no better: one that
// ignores both the end of its input and SIGTERM, one that leaves processes in its group, in a
// session of their own and as daemons, one that ends at once, one that is slow to start. All of
// them inherit a variable of the environment, by which what is left of them is found.
//
// Processes are found in /proc, so the trials need Linux.
package trial
