package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// listen answers subscriptions/listen. It listens at each upstream, and also reports when upstreams
// appear and disappear.
func (g *Gateway) listen(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	wanted, ok := jsonx.Lookup(req.Params, "notifications")
	if !ok {
		wanted = json.RawMessage(`{}`)
	}
	if jsonx.KindOf(wanted) != '{' {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "%s: %q must be an object", req.Method, "notifications")
	}
	uris, err := watched(req.Method, wanted)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &listening{g: g, ctx: ctx, wanted: wanted, uris: uris, at: map[*upstream]*following{}, acked: make(chan struct{})}
	defer l.wg.Wait()
	defer cancel()

	ups, told, changed := g.watch()
	if err := l.refusal(ups); err != nil {
		return nil, err
	}
	l.update(ups)
	honoured, left := l.honoured()
	if call := mcp.CallFrom(ctx); left > 0 && call != nil && call.Revision.Sessions() {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "the server does not accept a subscription to this resource") // T-50
	}
	if err := forward.Notify(ctx, noteAcknowledged, listenParams(honoured)); err != nil {
		return nil, err
	}
	close(l.acked)
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return mcp.RawResult(`{}`), nil
		}
		var now [3]int
		ups, now, changed = g.watch()
		l.update(ups)
		var set changeSet
		for i := range now {
			if now[i] != told[i] {
				set |= 1 << i
			}
		}
		if err := l.listsChanged(set); err != nil {
			return nil, err
		}
		told = now
	}
}

const (
	noteAcknowledged = "notifications/subscriptions/acknowledged"
	noteUpdated      = "notifications/resources/updated"
)

var listChanges = [...]struct{ member, method string }{
	{"toolsListChanged", "notifications/tools/list_changed"},
	{"promptsListChanged", "notifications/prompts/list_changed"},
	{"resourcesListChanged", "notifications/resources/list_changed"},
}

// listening is one listen of a caller. It owns a goroutine per upstream, which ends with ctx.
type listening struct {
	g      *Gateway
	ctx    context.Context // of the listen
	wg     sync.WaitGroup
	wanted json.RawMessage
	uris   []string // of the resources that the caller wants
	at     map[*upstream]*following
	acked  chan struct{} // closed when the caller has the acknowledgement

	mu      sync.Mutex
	refused map[string]bool // resources that their upstreams do not report; guarded by mu
}

// following is the part of a listen at one upstream. It is not modified once made.
type following struct {
	l      *listening
	up     *upstream
	uris   []string        // those of the wanted resources that the upstream has
	tasks  bool            // it follows tasks too
	lists  bool            // it follows only changes of lists
	filter json.RawMessage // sent to the upstream
	cancel context.CancelFunc
	once   sync.Once
	begun  chan struct{} // closed when it listens, or cannot for now
}

// notify sends a notification to the caller of ctx, after the acknowledgement: an upstream that
// listens already may report a change while another one does not listen yet (SUB-26-003).
func (l *listening) notify(ctx context.Context, method string, params any) error {
	select {
	case <-l.acked:
		return forward.Notify(ctx, method, params)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// listsChanged tells the caller which of the lists that it listens to have changed.
func (l *listening) listsChanged(set changeSet) error {
	for i, n := range listChanges {
		if set&(1<<i) == 0 {
			continue
		}
		if on, _ := jsonx.Lookup(l.wanted, n.member); string(on) == "true" {
			if err := l.notify(l.ctx, n.method, struct{}{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// update listens at the current upstreams and stops listening at others.
func (l *listening) update(ups []*upstream) {
	owners := l.g.owners(l.ctx, l.uris)
	still := map[*upstream]bool{}
	var fresh []*following
	for _, up := range ups {
		still[up] = true
		f := l.following(up, owners)
		if old := l.at[up]; old != nil {
			if slices.Equal(old.uris, f.uris) {
				continue
			}
			old.cancel()
		}
		var ctx context.Context
		ctx, f.cancel = context.WithCancel(l.ctx)
		l.at[up] = f
		l.wg.Go(func() { _ = l.g.user().Run(ctx, revision.MethodListen, func() error { f.run(ctx); return nil }) })
		fresh = append(fresh, f)
	}
	for up, f := range l.at {
		if !still[up] {
			f.cancel()
			delete(l.at, up)
		}
	}
	// Wait until the upstreams have begun, so that the acknowledgement is true, unless one takes
	// too long.
	timer := time.NewTimer(l.g.listTimeout())
	defer timer.Stop()
	for _, f := range fresh {
		select {
		case <-f.begun:
		case <-timer.C:
			return
		case <-l.ctx.Done():
			return
		}
	}
}

// refusal returns the error with which the middleware of an upstream refuses its part of the
// listen, or nil. A resource that nobody lists must be accepted by the middleware of at least one
// upstream; if it were treated otherwise, the answer would reveal whether it exists.
func (l *listening) refusal(ups []*upstream) error {
	if !l.g.hides() {
		return nil
	}
	owners := l.g.owners(l.ctx, l.uris)
	for _, up := range ups {
		if f := l.following(up, owners); !f.lists {
			if err := l.refusedBy(up, f.filter); err != nil {
				return err
			}
		}
	}
	for _, uri := range l.uris {
		if owners[uri] != nil {
			continue
		}
		var refused error
		for _, up := range ups {
			if refused = l.refusedBy(up, jsonx.With(nil, json.RawMessage(`{}`), "resourceSubscriptions", appendStrings(nil, []string{uri}))); refused == nil {
				break
			}
		}
		if refused != nil {
			return refused
		}
	}
	return nil
}

func (l *listening) refusedBy(up *upstream, filter json.RawMessage) error {
	return up.refuses(l.ctx, &mcp.Request{Method: "subscriptions/listen", Params: listenParams(filter)})
}

func listenParams(filter json.RawMessage) json.RawMessage {
	return append(append([]byte(`{"notifications":`), filter...), '}')
}

// following prepares a listen at one upstream: for the list changes that the caller wants, and for
// the resources and tasks that belong to the upstream.
func (l *listening) following(up *upstream, owners map[string]*upstream) *following {
	f := &following{l: l, up: up, filter: l.wanted, begun: make(chan struct{})}
	if l.uris != nil {
		for _, uri := range l.uris {
			if owners[uri] == up {
				f.uris = append(f.uris, uri)
			}
		}
		f.filter = jsonx.With(nil, f.filter, "resourceSubscriptions", appendStrings(nil, f.uris))
	}
	if raw, ok := jsonx.Lookup(l.wanted, "taskIds"); ok {
		var own []string
		for e := range jsonx.Elements(raw) {
			if id, err := jsonx.Unquote(e); err == nil {
				if at, _, there := l.g.ownerOfTask(l.ctx, id); at == up {
					own = append(own, there)
				}
			}
		}
		f.filter = jsonx.With(nil, f.filter, "taskIds", appendStrings(nil, own))
		f.tasks = len(own) > 0
	}
	f.lists = !f.tasks && len(f.uris) == 0
	return f
}

// honoured returns what the caller listens to: everything that it wants except the resources that
// upstreams refuse. The result refused is the number of those.
func (l *listening) honoured() (filter json.RawMessage, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.refused) == 0 {
		return l.wanted, 0
	}
	left := slices.DeleteFunc(slices.Clone(l.uris), func(uri string) bool { return l.refused[uri] })
	return jsonx.With(nil, l.wanted, "resourceSubscriptions", appendStrings(nil, left)), len(l.refused)
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonx.AppendString(dst, s)
	}
	return append(dst, ']')
}

// begin marks that the following listens, or cannot for now.
func (f *following) begin() { f.once.Do(func() { close(f.begun) }) }

// run listens at the caller's connection to the upstream until ctx ends. When a connection ends, it
// listens at the next one and reports each resource as changed, because events are not replayed
// (T-55, T-56).
func (f *following) run(ctx context.Context) {
	defer f.begin()
	pause, again := firstPause, false
	for ctx.Err() == nil {
		began := time.Now()
		err := f.listen(ctx, &again)
		f.begin()
		var rpc *mcp.Error
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound:
			return // the handler does not support listening
		case errors.Is(err, errMoved):
			pause = firstPause
			continue
		case time.Since(began) > longPause:
			pause = firstPause
		}
		f.l.g.log().Debug("no notifications from a server", "server", f.up.name, "err", err)
		rest(ctx, &pause)
	}
}

// errMoved says that the caller now uses another connection.
var errMoved = errors.New("the connection was replaced")

// listen listens at the caller's connection, or waits for one, until the connection ends. If again
// is true, it has listened before.
func (f *following) listen(ctx context.Context, again *bool) error {
	if f.up.fixed != nil {
		return f.listenAt(ctx, f.up.fixed, again)
	}
	p := f.up.pool
	if len(f.uris) > 0 {
		// A subscription needs a connection, and keeps it.
		c, err := p.take(ctx, revision.MethodListen)
		if err != nil {
			return err
		}
		defer p.release(c, nil, nil)
		if c.shared != nil && !f.tasks {
			return f.read(ctx, c.shared, again)
		}
		return f.listenAt(ctx, c, again)
	}
	who := clientOf(ctx)
	c, changed := p.current(who)
	for c == nil {
		f.begin()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		c, changed = p.current(who)
	}
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	if f.lists && c.shared != nil {
		*again = true
		f.begin() // the gateway reports changes of lists
		context.AfterFunc(own, func() { ended <- context.Cause(own) })
	} else {
		f.l.wg.Go(func() {
			err := errors.New("code of the user ended the goroutine")
			defer func() { ended <- err }()
			err = f.l.g.user().Run(own, revision.MethodListen, func() error { return f.listenAt(own, c, again) })
		})
	}
	for {
		select {
		case err := <-ended:
			return err
		case <-changed:
			var now *conn
			if now, changed = p.current(who); now != c {
				cancel(errMoved)
				<-ended
				return errMoved
			}
		}
	}
}

// read listens at the shared subscription of a connection, behind the middleware.
func (f *following) read(ctx context.Context, n *subscription, again *bool) error {
	shared := mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) { return nil, f.readShared(ctx, n, again) })
	_, err := f.up.guarded(shared).Handle(ctx, &mcp.Request{Method: "subscriptions/listen", Params: listenParams(f.filter)})
	return err
}

func (f *following) readShared(ctx context.Context, n *subscription, again *bool) error {
	r, err := n.join(ctx, f.uris)
	defer n.leave(r)
	if err != nil {
		return err
	}
	f.honour(r.honoured)
	if err := f.resumed(ctx, *again); err != nil {
		return err
	}
	*again = true
	f.begin()
	for {
		changed, err := n.next(ctx, r)
		if err != nil {
			return err
		}
		for _, params := range changed {
			if err := f.l.notify(ctx, noteUpdated, json.RawMessage(params)); err != nil {
				return err
			}
		}
	}
}

// listenAt listens at one connection and forwards its notifications except the acknowledgement.
func (f *following) listenAt(ctx context.Context, c *conn, again *bool) error {
	l := f.l
	out := forward.WithNotify(l.g.naming(ctx, f.up, ""), func(method string, params json.RawMessage) error {
		switch method {
		case noteAcknowledged:
			return f.acknowledged(params, c, again)
		case "notifications/tasks":
			params = l.g.ofTask(l.ctx, f.up, params)
		}
		return l.notify(l.ctx, method, params)
	})
	filter := f.filter
	if c.shared != nil { // the gateway reports changes of lists
		for _, n := range listChanges {
			filter = jsonx.Without(nil, filter, n.member)
		}
	}
	_, err := f.up.guarded(c.h).Handle(out, &mcp.Request{Method: "subscriptions/listen", Params: listenParams(filter)})
	if err == nil {
		err = errors.New("the server ended the subscription")
	}
	return err
}

// acknowledged processes the acknowledgement of an upstream.
func (f *following) acknowledged(params json.RawMessage, c *conn, again *bool) error {
	raw, _ := jsonx.LookupPath(params, "notifications", "resourceSubscriptions")
	told := map[string]bool{}
	for e := range jsonx.Elements(raw) {
		if uri, err := jsonx.Unquote(e); err == nil {
			told[uri] = true
		}
	}
	f.honour(told)
	if err := f.resumed(f.l.ctx, *again); err != nil {
		return err
	}
	if *again && c.own { // for other connections, the gateway reports these changes
		if err := f.l.listsChanged(f.up.lists()); err != nil {
			return err
		}
	}
	*again = true
	f.begin()
	return nil
}

// honour records which resources the upstream does not report.
func (f *following) honour(told map[string]bool) {
	l := f.l
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, uri := range f.uris {
		if told[uri] {
			continue
		}
		if l.refused == nil {
			l.refused = map[string]bool{}
		}
		l.refused[uri] = true
	}
}

// resumed reports each resource as changed if it was listened to before, because events are not
// replayed (T-55, T-56).
func (f *following) resumed(ctx context.Context, again bool) error {
	if !again {
		return nil
	}
	for _, uri := range f.uris {
		if err := f.l.notify(ctx, noteUpdated, map[string]string{"uri": uri}); err != nil {
			return err
		}
	}
	return nil
}

// maxWatched bounds the resources of one listen.
const maxWatched = 10_000

// watched returns the URIs of the resources that a caller wants to follow.
func watched(method string, wanted json.RawMessage) ([]string, error) {
	raw, ok := jsonx.Lookup(wanted, "resourceSubscriptions")
	if !ok {
		return nil, nil
	}
	uris := []string{}
	if err := jsonx.Unmarshal(raw, &uris); err != nil {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "%s: resourceSubscriptions must be a list of URIs", method)
	}
	if len(uris) > maxWatched {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "%s: %d resources at once, at most %d", method, len(uris), maxWatched)
	}
	return uris, nil
}
