//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// pipeFD is where the guard finds its pipe: the first of exec.Cmd's ExtraFiles.
const pipeFD = 3

// guarded describes a command under a guard. Release ends the guard's watch; it is
// called after the session has ended.
func guarded(command string, args []string) (cmd *exec.Cmd, release func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program, to guard the server: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd = &exec.Cmd{
		Path:       self,
		Args:       append([]string{os.Args[0], guardVerb, "--", command}, args...),
		ExtraFiles: []*os.File{r},
		// Without one, package mcp would have the kernel kill the guard, and
		// nobody would be left to end the group.
		SysProcAttr: parentDeath(syscall.SIGTERM),
	}
	return cmd, func() { r.Close(); w.Close() }, nil
}

const (
	// A signal to the group reaches the command too, and a second one would make
	// many programs skip their cleaning up. So it is passed on only to a command
	// that is still there after a while.
	forwardAfter = time.Second

	// When the parent is gone nobody waits for a slow end.
	orphanGrace = time.Second
)

// runGuard starts a command and stays with it. It returns the command's exit code,
// or 127 if it cannot be started.
func runGuard(ctx context.Context, args []string, stderr io.Writer) int {
	if len(args) < 2 || args[0] != "--" {
		fmt.Fprintln(stderr, "patchbay: error: "+guardVerb+" is for patchbay itself")
		return exitUsage
	}
	// Caught and not ignored: what is ignored stays so in the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	group := os.Getpid()
	if syscall.Getpgrp() != group {
		if err := syscall.Setpgid(0, 0); err != nil {
			fmt.Fprintln(stderr, "patchbay: error: guard:", err)
			return exitLocal
		}
	}
	syscall.CloseOnExec(pipeFD)
	orphaned := make(chan struct{})
	go func() {
		pipe := os.NewFile(pipeFD, "parent")
		io.Copy(io.Discard, pipe)
		close(orphaned)
	}()

	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = parentDeath(syscall.SIGKILL)
	ended := make(chan error, 1)
	started := make(chan error, 1)
	go func() {
		lockThread() // the parent-death signal is about the thread that forked
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		fmt.Fprintf(stderr, "patchbay: cannot start %q: %v\n", args[1], err)
		return 127
	}
	// The command has them now. Its own end, or its closing of them, must be seen at
	// the other side.
	os.Stdin.Close()
	os.Stdout.Close()
	os.Stderr.Close()

	term := ctx.Done()
	var forward <-chan time.Time
	for {
		select {
		case err := <-ended:
			endGroup(group)
			return statusOf(err)
		case <-term:
			term, forward = nil, time.After(forwardAfter)
		case <-forward:
			cmd.Process.Signal(syscall.SIGTERM)
		case <-orphaned:
			syscall.Kill(-group, syscall.SIGTERM)
			select {
			case <-ended:
			case <-time.After(orphanGrace):
			}
			syscall.Kill(-group, syscall.SIGKILL) // this process too
		}
	}
}

// endGroup kills what is left of the group when the command has ended. The end of the
// parent may be why it has, so this must not wait for news of that. To live on and
// tell the command's status, the guard goes over to the group of its parent; if that
// is impossible the parent is gone, and nobody asks.
func endGroup(group int) {
	if parents, err := syscall.Getpgid(os.Getppid()); err == nil && parents != group {
		syscall.Setpgid(0, parents) // if it fails, the next line ends this process too
	}
	syscall.Kill(-group, syscall.SIGKILL)
}

// statusOf returns the exit code of a command, as a shell would.
func statusOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return exitLocal
	case exit.ExitCode() >= 0:
		return exit.ExitCode()
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exitLocal
}
