package gateway

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// listen answers subscriptions/listen: one listen at each upstream, and the
// coming and going of upstreams themselves. It owns a goroutine per upstream, ended
// with ctx.
func (g *Gateway) listen(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	wanted, ok := jsonx.Lookup(req.Params, "notifications")
	if !ok {
		wanted = json.RawMessage(`{}`)
	}
	if jsonx.KindOf(wanted) != '{' {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "%s: %q must be an object", req.Method, "notifications")
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	l := &listening{g: g, ctx: ctx, wg: &wg, wanted: wanted, at: map[*upstream]context.CancelFunc{}}
	ups, changed := g.upstreams()
	l.update(ups)
	ack := append(append([]byte(`{"notifications":`), wanted...), '}')
	if err := mcp.Notify(ctx, "notifications/subscriptions/acknowledged", json.RawMessage(ack)); err != nil {
		return nil, err
	}
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return mcp.RawResult(`{}`), nil
		}
		ups, changed = g.upstreams()
		l.update(ups)
		for _, n := range listChanges {
			if on, _ := jsonx.Lookup(wanted, n.member); string(on) == "true" {
				if err := mcp.Notify(ctx, n.method, struct{}{}); err != nil {
					return nil, err
				}
			}
		}
	}
}

var listChanges = []struct{ member, method string }{
	{"toolsListChanged", "notifications/tools/list_changed"},
	{"promptsListChanged", "notifications/prompts/list_changed"},
	{"resourcesListChanged", "notifications/resources/list_changed"},
}

// listening is one listen of a caller.
type listening struct {
	g      *Gateway
	ctx    context.Context // of the listen
	wg     *sync.WaitGroup
	wanted json.RawMessage
	at     map[*upstream]context.CancelFunc
}

// update listens at the upstreams there are now and at no others.
func (l *listening) update(ups []*upstream) {
	still := map[*upstream]bool{}
	for _, up := range ups {
		still[up] = true
		if l.at[up] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(l.ctx)
		l.at[up] = cancel
		ready := make(chan struct{})
		l.wg.Go(func() { l.run(ctx, up, ready) })
		// What the caller is told it listens to, it listens to, unless a server
		// takes too long to say so.
		timer := time.NewTimer(l.g.listTimeout())
		select {
		case <-ready:
		case <-timer.C:
		case <-l.ctx.Done():
		}
		timer.Stop()
	}
	for up, cancel := range l.at {
		if !still[up] {
			cancel()
			delete(l.at, up)
		}
	}
}

// run listens at one upstream and passes on what it says, but for its
// acknowledgement. Ready is closed when that has come or never will.
func (l *listening) run(ctx context.Context, up *upstream, ready chan struct{}) {
	var once sync.Once
	open := func() { once.Do(func() { close(ready) }) }
	defer open()
	out := mcp.WithNotify(ctx, func(method string, params json.RawMessage) error {
		if method == "notifications/subscriptions/acknowledged" {
			open()
			return nil
		}
		return mcp.Notify(l.ctx, method, params)
	})
	// Several upstreams may be asked for a URI that one of them has: one that does
	// not have it refuses or says nothing, and both are fine.
	params := append(append([]byte(`{"notifications":`), l.filter(ctx, up)...), '}')
	if _, err := up.forward(out, "subscriptions/listen", params); err != nil && ctx.Err() == nil {
		l.g.log().Warn("no notifications from a server", "server", up.name, "err", err)
	}
}

// filter is what is asked of one upstream: the list changes that the caller wants,
// and of the resources those that are the upstream's.
func (l *listening) filter(ctx context.Context, up *upstream) json.RawMessage {
	uris, ok := jsonx.Lookup(l.wanted, "resourceSubscriptions")
	if !ok || jsonx.KindOf(uris) != '[' {
		return l.wanted
	}
	own := []byte{'['}
	for u := range jsonx.Elements(uris) {
		uri, err := jsonx.Unquote(u)
		if err != nil {
			continue
		}
		if owner := l.g.ownerOfURI(ctx, uri); owner != up {
			continue
		}
		if len(own) > 1 {
			own = append(own, ',')
		}
		own = append(own, u...)
	}
	return jsonx.With(nil, l.wanted, "resourceSubscriptions", append(own, ']'))
}
