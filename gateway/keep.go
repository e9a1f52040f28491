package gateway

import (
	"context"
	"fmt"
)

// Keep is Run for a server whose connection all share. Report, if not nil, is told of each
// connection that was opened, and of each error that differs from the one before.
func (g *Gateway) Keep(ctx context.Context, name string, open func(context.Context) (Upstream, error), report func(Upstream, error)) {
	if report == nil {
		report = func(Upstream, error) {}
	}
	last := ""
	tell := func(err error) {
		if err.Error() != last {
			last = err.Error()
			report(nil, err)
		}
	}
	var before Upstream
	err := g.Run(ctx, Source{Name: name, Share: Shared, Open: func(ctx context.Context) (Upstream, error) {
		if before != nil {
			tell(fmt.Errorf("connection lost: %w", before.Err()))
			before = nil
		}
		up, err := open(ctx)
		if err != nil {
			tell(err)
			return nil, err
		}
		before, last = up, ""
		report(up, nil)
		return up, nil
	}})
	if err != nil {
		report(nil, err)
	}
}
