// Package ping measures round trips to a server.
package ping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Method returns the request that a server of a revision answers without work. Revision 2026-07-28 has no ping; there it is
// server/discover (basic/utilities/ping of 2025-11-25; server/discover of 2026-07-28).
func Method(r mcp.Revision) string {
	if r.Sessions() {
		return "ping"
	}
	return "server/discover"
}

// Series makes round trips, and prints each. All fields are required.
type Series struct {
	Count    int           // 0: until the context ends
	Interval time.Duration // between two
	Print    func(line string)
	JSON     func(v any) error // nil: lines are for people
	Flush    func() error

	method string
	sent   int
	times  []time.Duration
	last   error // the error of the last failed round trip
}

// Run makes the round trips. It returns the error of a series without any response.
func (s *Series) Run(ctx context.Context, p *launch.Session) error {
	s.method = Method(p.Revision())
	for n := 1; s.Count == 0 || n <= s.Count; n++ {
		if n > 1 && !pause(ctx, s.Interval) {
			break
		}
		if err := s.one(ctx, p, n); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return s.summary()
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

// one makes a round trip. An error ends the series.
func (s *Series) one(ctx context.Context, p *launch.Session, n int) error {
	start := time.Now()
	_, err := p.Raw(ctx, s.method, nil, mcp.WithoutCache())
	took := time.Since(start)
	var rpc *mcp.Error
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // ctrl-C
	case errors.As(err, &rpc):
		// A refusal is a response: the round trip was made.
		s.last = err
	case err != nil && p.Err() != nil:
		return err
	}
	s.sent++
	line := struct {
		N      int     `json:"n"`
		Method string  `json:"method"`
		Millis float64 `json:"ms"`
		Error  string  `json:"error,omitempty"`
	}{N: n, Method: s.method, Millis: float64(took.Microseconds()) / 1000}
	text := fmt.Sprintf("%3d  %s", n, screen.ShortTime(took))
	if err != nil {
		line.Error = err.Error()
		text += "  " + screen.OneLine(screen.Clip(err.Error()))
	}
	if err == nil || rpc != nil {
		s.times = append(s.times, took)
	} else {
		s.last = err
	}
	if s.JSON != nil {
		if err := s.JSON(line); err != nil {
			return err
		}
	} else {
		s.Print(text)
	}
	return s.Flush()
}

// summary prints the totals, and returns the error of a series without any response.
func (s *Series) summary() error {
	answered := len(s.times)
	if s.JSON == nil {
		text := fmt.Sprintf("%d sent, %d answered", s.sent, answered)
		if answered > 0 {
			slices.Sort(s.times)
			text += fmt.Sprintf("; min %s, median %s, max %s", screen.ShortTime(s.times[0]), screen.ShortTime(s.times[answered/2]), screen.ShortTime(s.times[answered-1]))
		}
		s.Print(text)
	}
	if answered == 0 && s.last != nil {
		return s.last
	}
	return nil
}
