package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
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

// pingCmd measures round trips. Revision 2026-07-28 has no ping; there it uses server/discover,
// which every server answers without work (basic/utilities/ping of 2025-11-25; server/discover of
// 2026-07-28).
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
	method := "server/discover"
	if p.Revision().Sessions() {
		method = "ping"
	}
	if !a.JSON {
		a.print(fmt.Sprintf("%s over %s, revision %s, open after %s", method, wireOf(a.server), p.Revision(), shortTime(time.Since(start))))
	}
	t := &roundTrips{a: a, method: method}
	for n := 1; c.Count == 0 || n <= c.Count; n++ {
		if n > 1 && !pause(a.ctx, c.Interval) {
			break
		}
		if err := t.one(p, n); err != nil {
			return err
		}
		if a.ctx.Err() != nil {
			break
		}
	}
	return t.summary()
}

// pause waits for d, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// roundTrips collects the measurements.
type roundTrips struct {
	a      *app
	method string
	sent   int
	times  []time.Duration
	last   error // the error of the last failed round trip
}

// one makes a round trip. An error ends the series.
func (t *roundTrips) one(p *launch.Session, n int) error {
	start := time.Now()
	_, err := p.Raw(t.a.ctx, t.method, nil, mcp.WithoutCache())
	took := time.Since(start)
	var rpc *mcp.Error
	switch {
	case err != nil && t.a.ctx.Err() != nil:
		return nil // ctrl-C
	case errors.As(err, &rpc):
		// A refusal is a response: the round trip was made.
		t.last = err
	case err != nil && p.Err() != nil:
		return err
	}
	t.sent++
	line := struct {
		N      int     `json:"n"`
		Method string  `json:"method"`
		Millis float64 `json:"ms"`
		Error  string  `json:"error,omitempty"`
	}{N: n, Method: t.method, Millis: float64(took.Microseconds()) / 1000}
	text := fmt.Sprintf("%3d  %s", n, shortTime(took))
	if err != nil {
		line.Error = err.Error()
		text += "  " + oneLine(clip(err.Error()))
	}
	if err == nil || rpc != nil {
		t.times = append(t.times, took)
	} else {
		t.last = err
	}
	if t.a.JSON {
		if err := t.a.printJSON(line); err != nil {
			return err
		}
	} else {
		t.a.print(text)
	}
	return t.a.out.Flush()
}

// summary prints the totals, and returns the error of a series without any response.
func (t *roundTrips) summary() error {
	answered := len(t.times)
	if !t.a.JSON {
		text := fmt.Sprintf("%d sent, %d answered", t.sent, answered)
		if answered > 0 {
			slices.Sort(t.times)
			text += fmt.Sprintf("; min %s, median %s, max %s", shortTime(t.times[0]), shortTime(t.times[answered/2]), shortTime(t.times[answered-1]))
		}
		t.a.print(text)
	}
	if answered == 0 && t.last != nil {
		return t.last
	}
	return nil
}
