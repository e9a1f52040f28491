package main

import (
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/ping"
)

var pingVerb = verb{
	name: "ping", summary: "Measure round trips.", usage: "[SERVER]",
	examples: []string{"patchbay ping -s everything", "patchbay ping -n 0 --interval 5s -s http://127.0.0.1:7420/mcp"},
	minor:    true,
	server:   oneServer | wordIsServer | programIsServer,
	details: `Sends server/discover in revision 2026-07-28, which has no ping. Exit code 0:
the server answered.`,
	command: func() command { return new(pingCmd) },
}

// pingCmd measures round trips.
type pingCmd struct {
	Count    int           `short:"n" default:"4" placeholder:"COUNT" help:"Number of pings; 0: until ctrl-C."`
	Interval time.Duration `default:"1s" placeholder:"TIME" help:"Pause between two pings."`
}

func (c *pingCmd) Run(a *app) error {
	if c.Count < 0 || c.Interval < 0 {
		return usagef("--count and --interval must not be negative")
	}
	start := time.Now()
	p, err := a.open()
	if err != nil {
		return err
	}
	s := &ping.Series{Count: c.Count, Interval: c.Interval, Print: a.print, Flush: a.out.Flush}
	if a.JSON {
		s.JSON = a.printJSON
	} else {
		a.print(fmt.Sprintf("%s over %s, revision %s, open after %s", ping.Method(p.Revision()), wireOf(a.server), p.Revision(), shortTime(time.Since(start))))
	}
	return s.Run(a.ctx, p)
}
