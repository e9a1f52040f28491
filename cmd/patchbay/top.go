package main

import (
	"context"
	"os"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/top"
	"github.com/patchbay-dev/patchbay/internal/health"
)

var topVerb = verb{
	name: "top", summary: "Show the traffic of running gateways, live.", usage: "[--once] [-s URL]",
	examples: []string{"patchbay top", "patchbay top --once", "patchbay top -s http://127.0.0.1:7420/mcp"},
	minor:    true,
	server:   namedServer | urlIsServer,
	details: `Redraws a table of servers and their busiest tools every second: calls, errors
and latencies of the last minute; ITSELF is the p95 of the server without the
gateway. q ends it. Without a terminal, prints the table once.`,
	command: func() command { return new(topCmd) },
}

// topCmd shows the traffic of each running up.
type topCmd struct {
	Once bool `name:"once" help:"Print the table once, as plain text."`
}

func (c *topCmd) Run(a *app) error {
	if a.JSON {
		return usagef("top is for people").Hint("patchbay status --json")
	}
	in, _ := a.stdin.(*os.File)
	out, _ := a.rawOut.(*os.File)
	if !c.Once && a.tty.in && a.tty.out && in != nil && out != nil {
		ask := func(context.Context) ([]health.Found, error) { return a.askedUps() }
		return top.Run(a.ctx, in, out, ask, a.bold)
	}
	ups, err := a.askedUps()
	if err != nil {
		return err
	}
	if len(ups) == 0 {
		return noUp()
	}
	for _, line := range top.Lines(ups, a.tty.width, 0, time.Now(), a.bold) {
		a.print(line)
	}
	return nil
}
