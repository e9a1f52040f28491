// Package guard keeps a server's command from outliving the program that started it,
// however that program ends.
//
// A command is started through a guard: this program again, with a hidden verb. The
// guard is the leader of a process group, starts the command in it with its own
// standard streams, and ends with the command's status. It holds the reading end of a
// pipe whose writing end is with the program. However that process ends, the pipe ends
// too, and the guard then ends the whole group: a server started by npx or a shell is a
// grandchild, which no parent-death signal of the kernel reaches.
//
// On Linux the guard also adopts what leaves the group, such as a daemon or what is
// started with setsid, and ends it with the rest: whatever a server starts ends with the server.
// Elsewhere such a process is out of reach, as it is on Linux if the guard itself
// is killed. On Windows the job object of package mcp does all this, and there is no guard.
//
// The guard runs while its package is initialized. This package imports nothing but the
// standard library, so that this is before most others are: a guard would otherwise wait
// for what only the program needs, which is most of the time that a command takes to start.
package guard

// Verb is the hidden first argument of a guard.
const Verb = "__guard"
