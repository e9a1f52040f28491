package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

const headerSession = "Mcp-Session-Id"

// sessionKey is the key of a session in the State, which does not learn its id: that is a secret. A session belongs to the path
// at which it was opened.
func sessionKey(path, id string) string {
	sum := sha256.Sum256([]byte(path + "\x00" + id))
	return "session." + hex.EncodeToString(sum[:16])
}

// owners knows which node has which session.
type owners struct {
	mu   sync.Mutex
	own  map[string]*owned // sessions of this node; guarded by mu
	seen map[string]string // sessions of others, and their nodes; guarded by mu
}

// owned is a session of this node.
type owned struct {
	users int       // requests that run, event streams too
	last  time.Time // when one began or ended
}

// maxSeen bounds what a node remembers of the sessions of others.
const maxSeen = 10_000

// ServeHTTP implements [http.Handler].
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header.Del(headerClient)
	id := r.Header.Get(headerSession)
	if id == "" || len(id) > 1024 {
		n.serve(w, r)
		return
	}
	key := sessionKey(r.URL.Path, id)
	owner, err := n.owner(r.Context(), key)
	switch {
	case err != nil:
		n.Logger.Warn("the node of a session is not known", "err", err)
		refuse(w, http.StatusServiceUnavailable, "the cluster does not answer; try again")
	case owner == "" || owner == n.Name:
		n.serve(w, r)
	default:
		n.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), place{}, place{key, owner})))
	}
}

// place is where a session is.
type place struct{ key, owner string }

// owner returns the node of a session, "" if there is none.
func (n *Node) owner(ctx context.Context, key string) (string, error) {
	n.owners.mu.Lock()
	_, own := n.owners.own[key]
	owner := n.owners.seen[key]
	n.owners.mu.Unlock()
	switch {
	case own:
		return n.Name, nil
	case owner != "":
		return owner, nil
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	e, err := n.State.Get(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	owner = string(e.Value)
	n.owners.mu.Lock()
	defer n.owners.mu.Unlock()
	if n.owners.seen == nil || len(n.owners.seen) >= maxSeen {
		n.owners.seen = map[string]string{}
	}
	n.owners.seen[key] = owner
	return owner, nil
}

// patience bounds how long a request waits for the State.
const patience = 3 * time.Second

// serve serves a request on this node, and tells the State of sessions that begin and end.
func (n *Node) serve(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(headerSession)
	o := &opening{ResponseWriter: w, node: n, request: r, known: id != ""}
	if id == "" {
		n.Handler.ServeHTTP(o, r)
		if o.status == 0 && o.Header().Get(headerSession) != "" { // an answer without a body
			o.WriteHeader(http.StatusOK)
		}
		return
	}
	key := sessionKey(r.URL.Path, id)
	defer func() { // a handler may panic
		n.owners.use(key, -1)
		if o.status == http.StatusNotFound || r.Method == http.MethodDelete && o.status/100 == 2 {
			n.closed(r.Context(), key)
		}
	}()
	n.owners.use(key, 1)
	n.Handler.ServeHTTP(o, r)
}

// use counts a request, if its session is one of this node.
func (o *owners) use(key string, by int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.own[key]; s != nil {
		s.users += by
		s.last = time.Now()
	}
}

// opening sees that an answer opens a session, of which the State learns before the client.
type opening struct {
	http.ResponseWriter
	node    *Node
	request *http.Request
	known   bool // the request has a session already
	status  int
	failed  bool // the answer was replaced
}

// Unwrap lets [http.ResponseController] find what w can do.
func (o *opening) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// Flush implements [http.Flusher], for handlers that ask for it.
func (o *opening) Flush() {
	if o.status == 0 {
		o.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(o.ResponseWriter).Flush() // it cannot, or the next write fails
}

// WriteHeader implements [http.ResponseWriter].
func (o *opening) WriteHeader(status int) {
	if o.status != 0 {
		return
	}
	if status < 200 {
		o.ResponseWriter.WriteHeader(status)
		return
	}
	o.status = status
	if id := o.Header().Get(headerSession); id != "" && !o.known && status < 300 {
		if err := o.node.opened(o.request.Context(), sessionKey(o.request.URL.Path, id)); err != nil {
			o.node.Logger.Warn("a session was not opened, because the other nodes would not find it", "err", err)
			o.failed = true
			o.Header().Del(headerSession)
			o.Header().Del("Content-Length")
			refuse(o.ResponseWriter, http.StatusServiceUnavailable, "the cluster does not answer; try again")
			return
		}
	}
	o.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (o *opening) Write(b []byte) (int, error) {
	if o.status == 0 {
		o.WriteHeader(http.StatusOK)
	}
	if o.failed {
		return len(b), nil
	}
	return o.ResponseWriter.Write(b)
}

func (n *Node) opened(ctx context.Context, key string) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	if _, err := n.State.Put(ctx, key, []byte(n.Name), 0, n.SessionIdle); err != nil {
		return err
	}
	n.owners.mu.Lock()
	defer n.owners.mu.Unlock()
	if n.owners.own == nil {
		n.owners.own = map[string]*owned{}
	}
	n.owners.own[key] = &owned{last: time.Now()}
	return nil
}

func (n *Node) closed(ctx context.Context, key string) {
	n.owners.mu.Lock()
	delete(n.owners.own, key)
	delete(n.owners.seen, key)
	n.owners.mu.Unlock()
	n.change(ctx, key, func(ctx context.Context, e Entry) error { return n.State.Delete(ctx, key, e.Version) })
}

// renew keeps the entries of this node's sessions that are in use, until stopped is closed.
func (n *Node) renew() {
	every := n.SessionIdle / 4
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-n.stopped:
			return
		case now := <-tick.C:
			for _, key := range n.owners.due(now, every, n.SessionIdle) {
				n.change(context.Background(), key, func(ctx context.Context, e Entry) error {
					_, err := n.State.Put(ctx, key, e.Value, e.Version, n.SessionIdle)
					return err
				})
			}
		}
	}
}

// due returns the sessions of this node that were in use within a time, and forgets those whose entries have expired.
func (o *owners) due(now time.Time, within, idle time.Duration) (keys []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, s := range o.own {
		switch {
		case s.users > 0 || now.Sub(s.last) <= within:
			keys = append(keys, key)
		case now.Sub(s.last) > 2*idle:
			delete(o.own, key)
		}
	}
	return keys
}

// change changes the entry of a session of this node.
func (n *Node) change(ctx context.Context, key string, f func(context.Context, Entry) error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	e, err := n.State.Get(ctx, key)
	if err == nil && string(e.Value) == n.Name {
		err = f(ctx, e)
	}
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrConflict) {
		n.Logger.Warn("the entry of a session was not changed", "err", err)
	}
}

// proxy forwards requests to the node in their context.
func (n *Node) proxy() http.Handler {
	return &httputil.ReverseProxy{
		Transport: &http.Transport{
			DialContext: n.dialContext, DisableCompression: true,
			MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute, // the other node closes none
		},
		Rewrite: func(p *httputil.ProxyRequest) {
			at, _ := p.In.Context().Value(place{}).(place)
			p.SetURL(&url.URL{Scheme: "http", Host: at.owner})
			p.Out.Host = p.In.Host
			p.Out.Header.Set(headerClient, p.In.RemoteAddr)
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v, ok := p.In.Header[name]; ok { // as the client or a proxy has sent it
					p.Out.Header[name] = v
				}
			}
		},
		FlushInterval: -1,
		ErrorHandler:  n.unreached,
		ErrorLog:      slog.NewLogLogger(n.Logger.Handler(), slog.LevelWarn),
	}
}

// unreached answers a request whose session is on a node that cannot be reached.
func (n *Node) unreached(w http.ResponseWriter, r *http.Request, err error) {
	at, _ := r.Context().Value(place{}).(place)
	n.owners.mu.Lock()
	delete(n.owners.seen, at.key)
	n.owners.mu.Unlock()
	if r.Context().Err() != nil {
		return // its client has left
	}
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	unsent := (*dialError)(nil)
	switch {
	case !errors.As(err, &unsent):
		n.Logger.Warn("a request was forwarded in vain", "node", at.owner, "err", err)
		refuse(w, http.StatusBadGateway, "the node of the session did not answer; whether it has done what was asked is not known")
	case !errors.Is(err, ErrNoNode) || n.lives(ctx, at.owner):
		n.Logger.Warn("a request was not forwarded", "node", at.owner, "err", err)
		refuse(w, http.StatusServiceUnavailable, "the node of the session cannot be reached; try again")
	default:
		n.Logger.Warn("a session was lost with its node", "node", at.owner)
		if e, err := n.State.Get(ctx, at.key); err == nil && string(e.Value) == at.owner {
			_ = n.State.Delete(ctx, at.key, e.Version) // it expires
		}
		refuse(w, http.StatusNotFound, "the session was lost with the node that had it; call initialize again, without Mcp-Session-Id")
	}
}

// lives says whether a node may still have its name: if it has died, its lease ends within seconds.
func (n *Node) lives(ctx context.Context, node string) bool {
	_, err := n.State.Get(ctx, leaseKey("node."+node))
	return !errors.Is(err, ErrNotFound)
}

// refuse answers with a JSON-RPC error for people, without an id: the message was not read.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":%q}}`, text)
}
