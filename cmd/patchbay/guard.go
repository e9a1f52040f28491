package main

// A server's command is started through a guard: this program again, with a hidden
// verb. The guard is the leader of a process group, starts the command in it with its
// own standard streams, and ends with the command's status. It holds the reading end of a
// pipe whose writing end is here. However this process ends, the pipe ends too,
// and the guard then ends the whole group: a server started by npx or a shell
// is a grandchild, which no parent-death signal of the kernel reaches.
//
// A process that leaves the group on purpose (a daemon) is out of reach. On Windows
// the job object of package mcp does all this, and there is no guard.

const guardVerb = "__guard"
