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

// Upstream is a connection to a server that ends at some time, as a *mcp.Session is.
type Upstream interface {
	mcp.Handler
	Done() <-chan struct{} // closed when the connection is over
	Err() error            // why
	Close() error          // bounded in time
}

// Keep keeps an upstream connected: it opens one, adds it, and when it
// ends opens another, with growing pauses, until ctx ends. It returns when
// the last one is closed, which is bounded in time.
//
// Report, if not nil, is told of each one that was opened, and of each error
// that differs from the one before. It is called from Keep's goroutine.
func (g *Gateway) Keep(ctx context.Context, name string, open func(context.Context) (Upstream, error), report func(Upstream, error)) {
	if report == nil {
		report = func(Upstream, error) {}
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

// keepOnce runs one connection from its opening to its end, and says why it ended.
func (g *Gateway) keepOnce(ctx context.Context, name string, open func(context.Context) (Upstream, error), report func(Upstream, error)) error {
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
