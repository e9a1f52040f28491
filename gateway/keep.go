package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// The pauses between attempts to connect to a server.
const (
	firstPause = time.Second
	longPause  = time.Minute
)

// Keep keeps an upstream connected: it opens a session, adds it, and when the
// session ends opens another, with growing pauses, until ctx ends. It returns when
// the last session is closed, which is bounded in time.
//
// Report, if not nil, is told of each session that was opened, and of each error
// that differs from the one before. It is called from Keep's goroutine.
func (g *Gateway) Keep(ctx context.Context, name string, open func(context.Context) (*mcp.Session, error), report func(*mcp.Session, error)) {
	if report == nil {
		report = func(*mcp.Session, error) {}
	}
	pause := firstPause
	last := ""
	for ctx.Err() == nil {
		opened := time.Now()
		err := g.keepOnce(ctx, name, open, report)
		if ctx.Err() != nil {
			return
		}
		if time.Since(opened) > longPause {
			pause, last = firstPause, "" // it worked for a while: start afresh
		}
		if err.Error() != last {
			last = err.Error()
			report(nil, err)
		}
		// A fleet of clients must not come back all at once.
		t := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		pause = min(2*pause, longPause)
	}
}

// keepOnce runs one session from its opening to its end, and says why it ended.
func (g *Gateway) keepOnce(ctx context.Context, name string, open func(context.Context) (*mcp.Session, error), report func(*mcp.Session, error)) error {
	s, err := open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := g.Set(name, s); err != nil {
		return err
	}
	defer g.Remove(name)
	report(s, nil)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.Done():
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("connection lost: %w", err)
	}
	return errors.New("connection lost")
}
