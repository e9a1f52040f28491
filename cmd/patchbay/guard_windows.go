package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
)

// guarded describes a command. There is no guard: the job object that package mcp puts
// it into ends it, and all it started, with this process.
func guarded(command string, args []string) (cmd *exec.Cmd, release func(), err error) {
	return exec.Command(command, args...), func() {}, nil
}

func runGuard(_ context.Context, _ []string, stderr io.Writer) int {
	fmt.Fprintln(stderr, "patchbay: error: "+guardVerb+" is not for this system")
	return exitUsage
}
