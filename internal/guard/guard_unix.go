//go:build unix

package guard

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		os.Exit(run(os.Args[2:]))
	}
}

// pipeFD is where the guard finds its pipe: the first of exec.Cmd's ExtraFiles.
const pipeFD = 3

// Leash is a program's hold on a guard. It may be used by several goroutines.
type Leash struct{ r, w *os.File }

// Command returns a command with an environment under a guard, which finds it in the PATH there.
// Release the leash when the command has ended, or is not
// started after all.
func Command(command string, args, env []string) (*exec.Cmd, *Leash, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program, to guard the server: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd := &exec.Cmd{
		Path: self,
		// Errors name the command instead of its guard.
		Args:       append([]string{command, Verb, "--", command}, args...),
		Env:        env,
		ExtraFiles: []*os.File{r},
		// Without SysProcAttr, package mcp would make the kernel kill the guard, and nothing would
		// end the group.
		SysProcAttr: parentDeath(syscall.SIGTERM),
	}
	return cmd, &Leash{r, w}, nil
}

// Release closes the pipe: the guard stops watching this program.
func (l *Leash) Release() {
	l.r.Close()
	l.w.Close()
}

// HandOver notifies the guard that this program ends on purpose and that the command's input is
// closed: the guard gives the command the time that the specification allows.
func (l *Leash) HandOver() {
	l.w.Write([]byte{handedOver}) // if it fails, the guard has already ended
}

const handedOver = 'h'

const (
	// A signal to the group reaches the command too, and a second one would make many programs skip
	// their cleanup. So it is passed on only to a command that is still running after a while.
	forwardAfter = time.Second

	// eofGrace is the time for a command that was handed over to end by itself.
	eofGrace = 500 * time.Millisecond

	// orphanGrace is shorter, because nobody waits once the parent is gone.
	orphanGrace = time.Second

	// termGrace is how long the guard waits between SIGTERM and SIGKILL to the command. It is less
	// than 2 s, because package mcp kills the guard and its group 2 s after SIGTERM, and without
	// the guard nothing kills the processes that have left the group.
	termGrace = 1500 * time.Millisecond

	// killTime bounds the wait for killed processes to end.
	killTime = 2 * time.Second

	// lastWords bounds the wait for the last of standard error when a process out of reach holds it
	// open.
	lastWords = 200 * time.Millisecond
)

// run starts a command and waits for it. It returns the command's exit code, or 127 if it cannot be
// started.
func run(args []string) int {
	if len(args) < 2 || args[0] != "--" {
		fmt.Fprintln(os.Stderr, "patchbay: error: "+Verb+" is for patchbay itself")
		return 2
	}
	// Caught, not ignored, because the command would inherit ignored signals. A broken pipe is then
	// an error of the write.
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGPIPE)
	group := os.Getpid()
	if syscall.Getpgrp() != group {
		if err := syscall.Setpgid(0, 0); err != nil {
			fmt.Fprintln(os.Stderr, "patchbay: error: guard:", err)
			return 1
		}
	}
	syscall.CloseOnExec(pipeFD)
	orphaned := make(chan bool, 1) // true: handed over
	go func() {
		said, _ := io.ReadAll(os.NewFile(pipeFD, "parent"))
		orphaned <- len(said) > 0 && said[0] == handedOver
	}()

	adoptOrphans()
	cmd := exec.Command(args[1], args[2:]...)
	cmd.SysProcAttr = parentDeath(syscall.SIGKILL)
	f, drained, err := start(cmd)
	if err != nil {
		fmt.Fprintf(os.Stderr, "patchbay: cannot start %q: %v\n", args[1], err)
		return 127
	}
	var forward, kill <-chan time.Time
	for {
		select {
		case status := <-f.ended:
			f.end()
			endGroup(group) // it may end this process too
			within(lastWords, drained)
			return status
		case <-term:
			if forward == nil {
				forward, kill = time.After(forwardAfter), time.After(termGrace)
			}
		case <-forward:
			syscall.Kill(f.command, syscall.SIGTERM)
		case <-kill:
			f.end()
		case gently := <-orphaned:
			if !gently || !within(eofGrace, f.gone) {
				terminate(group)
				within(orphanGrace, f.gone)
			}
			f.end()
			syscall.Kill(-group, syscall.SIGKILL) // this process too
		}
	}
}

// start starts the command with the streams of this process. Standard error goes through this
// process, so that a command that was handed over and still writes does not die of a broken pipe in
// the middle of its cleanup. The channel drained is closed when no process holds the command's
// standard error any more.
func start(cmd *exec.Cmd) (f *family, drained chan struct{}, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, w
	f, drained = &family{ended: make(chan int, 1), gone: make(chan struct{})}, make(chan struct{})
	started := make(chan error, 1)
	go func() {
		lockThread() // the parent-death signal is about the thread that forked
		err := cmd.Start()
		if err == nil {
			f.command = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			f.reap()
		}
	}()
	if err := <-started; err != nil {
		return nil, nil, err
	}
	// The command holds them now. When it ends or closes them, the other side must see that.
	os.Stdin.Close()
	os.Stdout.Close()
	w.Close()
	go func() {
		defer close(drained)
		io.Copy(os.Stderr, r)
		os.Stderr.Close()
		io.Copy(io.Discard, r)
	}()
	return f, drained, nil
}

// family is the command and, where the system lets the guard adopt them, all its descendants.
type family struct {
	command int           // its process
	ended   chan int      // the command's status, once
	gone    chan struct{} // closed when no process is left
}

// reap waits for the processes of the family until none is left. It stays on the thread that has
// started the command.
func (f *family) reap() {
	defer close(f.gone)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // there is no process to wait for
			return
		case pid == f.command && (status.Exited() || status.Signaled()):
			f.ended <- exitCode(status)
		}
	}
}

// end kills the rest of the family, repeatedly, because it may start more processes meanwhile. It
// takes at most killTime, and almost none if no process is left or can be found.
func (f *family) end() {
	pause := time.Millisecond
	for deadline := time.Now().Add(killTime); time.Now().Before(deadline) && !within(pause, f.gone); pause = min(2*pause, 50*time.Millisecond) {
		left := descendants()
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// terminate asks a group, and the descendants that have left it, to end.
func terminate(group int) {
	syscall.Kill(-group, syscall.SIGTERM)
	for _, pid := range descendants() {
		if of, err := syscall.Getpgid(pid); err == nil && of != group { // no process gets the signal twice
			syscall.Kill(pid, syscall.SIGTERM)
		}
	}
}

// within waits for a channel to be closed, but not for longer than d.
func within(d time.Duration, c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(d):
		return false
	}
}

// endGroup kills the rest of the group when the command has ended. The end of the parent may be the
// cause, so this must not wait for news of it. To survive and report the command's status, the
// guard moves to the group of its parent; if that fails, the parent is gone, and nobody needs the
// status.
func endGroup(group int) {
	if parents, err := syscall.Getpgid(os.Getppid()); err == nil && parents != group {
		syscall.Setpgid(0, parents) // if it fails, the next line ends this process too
	}
	syscall.Kill(-group, syscall.SIGKILL)
}

// exitCode returns the exit code of a command, as a shell does.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
