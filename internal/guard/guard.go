// Package guard keeps a server's command from outliving the program that started it,
// however that program ends.
//
// A command is started through a guard: this program again, with a hidden verb. The guard is the
// leader of a process group, starts the command in it with its own standard streams, and exits with
// the command's status. It holds the reading end of a pipe; the program holds the writing end.
// However the program ends, the pipe closes, and the guard then ends the whole group, because a
// server started by npx or a shell is a grandchild, which no parent-death signal of the kernel
// reaches.
//
// On Linux the guard also adopts processes that leave the group, such as a daemon or one started
// with setsid, and ends them with the rest: every process that a server starts ends with the
// server. On other systems such a process is out of reach, as it is on Linux if the guard itself is
// killed. On Windows the job object of package mcp does all this, and there is no guard.
//
// The guard runs while this package is initialized. This package imports only the standard library,
// so that it is initialized before most others, because a guard would otherwise wait for packages
// that only the program needs, which is most of the time that a command takes to start.
package guard

// Verb is the hidden first argument of a guard.
const Verb = "__guard"
