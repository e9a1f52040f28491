// Package nonblock reads and writes descriptors that never block, without a word to the scheduler of Go.
//
// For each system call of package syscall the scheduler prepares to lose the thread, and if the process was idle
// before, wakes its monitor, a thread that then looks around every 20 microseconds. A process that sleeps between
// two requests wakes it for each of them, which costs more than the calls that a request needs. A read or a write of a
// descriptor with O_NONBLOCK does not take long. The runtime itself makes such calls in the same way.
//
// The descriptors must stay as they are: nobody else may have them, or call their method Fd. Connections and pipes are
// used as they are on other systems than Linux, and with the race detector, which learns from package syscall which
// read comes after which write.
package nonblock
