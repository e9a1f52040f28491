// Command patchbay talks to servers of the Model Context Protocol, and serves servers of its own.
//
//	patchbay tools -- npx -y @modelcontextprotocol/server-everything
//	patchbay call everything/echo message=hi
//	patchbay serve everything --http 127.0.0.1:7420
//
// Standard output is data; messages for people go to standard error. "patchbay help" lists the
// verbs, "patchbay help exits" the exit codes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP) // a closed terminal sends several
		stop()                        // a second ctrl-C ends the program at once
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
