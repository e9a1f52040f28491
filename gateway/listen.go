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
	uris, err := watched(req.Method, wanted)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	l := &listening{g: g, ctx: ctx, wg: &wg, wanted: wanted, uris: uris, at: map[*upstream]context.CancelFunc{}}
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
	uris   []string // of the resources wanted
	at     map[*upstream]context.CancelFunc
}

// update listens at the upstreams there are now and at no others.
func (l *listening) update(ups []*upstream) {
	still := map[*upstream]bool{}
	owners := l.g.owners(l.ctx, l.uris)
	for _, up := range ups {
		still[up] = true
		if l.at[up] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(l.ctx)
		l.at[up] = cancel
		ready := make(chan struct{})
		filter := l.filter(up, owners)
		l.wg.Go(func() { l.run(ctx, up, filter, ready) })
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
func (l *listening) run(ctx context.Context, up *upstream, filter json.RawMessage, ready chan struct{}) {
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
	params := append(append([]byte(`{"notifications":`), filter...), '}')
	if _, err := up.forward(out, "subscriptions/listen", params); err != nil && ctx.Err() == nil {
		l.g.log().Warn("no notifications from a server", "server", up.name, "err", err)
	}
}

// filter is what is asked of one upstream: the list changes that the caller wants,
// and of the resources those that are the upstream's.
func (l *listening) filter(up *upstream, owners map[string]*upstream) json.RawMessage {
	if l.uris == nil {
		return l.wanted
	}
	own := []byte{'['}
	for _, uri := range l.uris {
		if owners[uri] != up {
			continue
		}
		if len(own) > 1 {
			own = append(own, ',')
		}
		own = jsonx.AppendString(own, uri)
	}
	return jsonx.With(nil, l.wanted, "resourceSubscriptions", append(own, ']'))
}

// maxWatched bounds the resources of one listen.
const maxWatched = 10_000

// watched reads the URIs of the resources that a caller wants to hear of.
func watched(method string, wanted json.RawMessage) ([]string, error) {
	raw, ok := jsonx.Lookup(wanted, "resourceSubscriptions")
	if !ok {
		return nil, nil
	}
	uris := []string{}
	if err := jsonx.Unmarshal(raw, &uris); err != nil {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "%s: resourceSubscriptions must be a list of URIs", method)
	}
	if len(uris) > maxWatched {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "%s: %d resources at once, at most %d", method, len(uris), maxWatched)
	}
	return uris, nil
}
