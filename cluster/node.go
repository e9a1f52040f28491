package cluster

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
)

// A Node is one of several processes that serve the same over HTTP. A client may send each request to any of them: sessions of
// revisions before 2026-07-28 live in the process that opened them, and requests for them are forwarded to it, answers
// streamed back. Of the requests without a session, as in 2026-07-28, only those are forwarded that go on with what one
// process has: a task, the call of an older server that asked a question (package gateway), or an event stream of HTTP+SSE.
// [Node.Share] lets another node go on with the sessions of one that has ended, and with their streams, and have the results of its
// tasks.
//
// Its fields are set before Join and not changed afterwards. Handler authenticates callers; a request that is forwarded passes
// it on the node that has the session, and there alone: with its headers, and the client's address and certificate.
type Node struct {
	// Name of this node. No other one has it. Required.
	Name string
	// State and Bus of the cluster. Required.
	State State
	Bus   Bus
	// Handler serves what a single process would. Required.
	Handler http.Handler
	// SessionIdle is how long other nodes find a session that has no request. It should not be less than what
	// Handler keeps it. Zero: an hour.
	SessionIdle time.Duration
	// Logger. Nil: slog.Default().
	Logger *slog.Logger

	begun    atomic.Bool // by Join
	joined   atomic.Bool // Join has returned
	paths    paths
	process  string // tells this process from one before it of the same name
	identity identity
	lease    atomic.Pointer[Lease] // of the name; nil: this node is not seen, or has not verified its sessions
	server   *http.Server
	listener net.Listener
	open     open
	waiting  waiting
	owners   owners
	seen     atomic.Pointer[[]string] // nodes, when they were last counted; nil: not yet
	sight    atomic.Pointer[sight]    // nil before Join
	renewals renewals
	keys     keys
	changes  changes
	retired  atomic.Bool
	others   others
	lines    lines
	pacer    web.Pacer
	events   events
	leaving  context.Context // ends when Leave is called
	leave    context.CancelFunc
	stopped  chan struct{} // closed when Leave has served what it could
	ended    sync.WaitGroup
	leftOnce sync.Once
}

// sight is whether the others see a node.
type sight struct {
	seen  bool
	since time.Time // since when that is so; zero: since Join
}

const (
	// presence is how long a node that has died keeps its name.
	presence = 3 * time.Second
	// missing is how long a node whose name is not renewed counts as alive for others that want its sessions, by their clocks.
	missing = presence - presence/24
)

// Join makes the node known to the others. If a node of that name has just died, Join waits for its lease to end, at most as long
// as ctx; if one lives, that is forever. Until Join has returned, a request waits, three seconds at most, and is then answered with 503; the node's stores keep nothing. A Node joins once.
func (n *Node) Join(ctx context.Context) (err error) {
	if !n.begun.CompareAndSwap(false, true) {
		return fmt.Errorf("node %s: has joined already, and a Node joins once: make another one", n.Name)
	}
	defer func() {
		n.joined.Store(err == nil)
		n.begun.Store(err == nil)
	}()
	switch {
	case n.State == nil || n.Bus == nil || n.Handler == nil:
		return errors.New("node: State, Bus and Handler are required")
	case n.SessionIdle == 0:
		n.SessionIdle = time.Hour
	}
	if err := Check("node", n.Name); err != nil {
		return err
	}
	if n.Logger == nil {
		n.Logger = slog.Default()
	}
	n.process = crand.Text()
	n.Events() // what it needs is there before others use it
	lease, err := n.acquire(ctx)
	if err == nil {
		if err = n.whole(ctx); err == nil {
			err = n.readKeys(ctx)
		}
		if err != nil {
			_ = lease.Release(ctx) // it ends by itself
		}
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	l, err := n.Bus.Listen(n.Name)
	if err != nil {
		_ = lease.Release(ctx) // it ends by itself
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	n.stopped = make(chan struct{})
	n.leaving, n.leave = context.WithCancel(context.Background())
	n.lines.bus = n.Bus
	deaf, err := n.hear()
	if err != nil {
		_ = l.Close()
		_ = lease.Release(ctx) // it ends by itself
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	n.server = &http.Server{Handler: http.HandlerFunc(n.forwarded), ErrorLog: slog.NewLogLogger(n.Logger.Handler(), slog.LevelWarn)}
	n.server.ConnState = n.waiting.note
	n.listener = l
	n.lease.Store(lease)
	n.sight.Store(&sight{seen: true})
	n.ended.Go(func() { _ = n.server.Serve(l) }) // until Leave
	n.ended.Go(func() { <-n.stopped; deaf() })
	n.ended.Go(func() { n.stay(lease) })
	n.ended.Go(n.renew)
	n.ended.Go(n.count)
	n.ended.Go(n.turnKeys)
	n.ended.Go(n.tellOthers)
	n.ended.Go(n.share) // of Events, if it was called before
	return nil
}

// Seen returns how many nodes there are, this one included, as far as it knows. It asks nobody.
func (n *Node) Seen() int {
	if list := n.seen.Load(); list != nil {
		return max(1, len(*list))
	}
	return 1
}

// Retire makes the other nodes go on with the sessions of this one, which is about to end: those without a request are given up, and
// requests that come from now on are forwarded to another node. Requests in progress go on here, for the shortest of which it waits, a second at most, so that Handler
// has all that are for it. Call it before Handler refuses requests, and Leave afterwards.
func (n *Node) Retire() {
	n.retired.Store(true)
	before := n.open.end()
	n.release()
	select {
	case <-before:
	case <-time.After(retireTime):
	}
	if n.joined.Load() {
		n.ended.Go(n.handIdle)
	}
}

// retireTime is more than a request needs until Handler has it.
const retireTime = time.Second

// open has the requests that came before the node retired.
type open struct {
	mu    sync.Mutex
	n     int           // guarded by mu
	ended chan struct{} // closed when there are none; nil: the node has not retired; guarded by mu
}

// begin counts a request until done is called, and reports false if the node has retired before.
func (o *open) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended != nil {
		return false
	}
	o.n++
	return true
}

func (o *open) done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n--; o.n == 0 && o.ended != nil {
		close(o.ended)
	}
}

// end returns what is closed when all requests that came before have ended.
func (o *open) end() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended == nil {
		if o.ended = make(chan struct{}); o.n == 0 {
			close(o.ended)
		}
	}
	return o.ended
}

// release asks the other nodes to close their connections to this one that have no request: one over a connection that Leave closes
// at that moment would be lost.
func (n *Node) release() {
	if err := n.Bus.Publish(context.Background(), retiredTopic, []byte(n.Name)); err != nil {
		n.Logger.Warn("the other nodes keep their connections to one that ends", "node", n.Name, "err", err)
	}
}

// retiredTopic is for the name of a node that retires: others close their connections to it that have no request. An older node sends
// no name.
const retiredTopic = "node.retired"

// others is what this node knows of nodes that end and begin.
type others struct {
	mu    sync.Mutex
	at    map[string]time.Time // when nodes have said that they retire, by name; guarded by mu
	begun map[string]begun     // the processes of nodes, by name; guarded by mu
}

// begun is when this node has seen that a process began; zero: the process was there before.
type begun struct {
	process string
	at      time.Time
}

// rolling is how long a process that has begun is taken for one that is not about to be restarted, while others are.
const rolling = 10 * time.Minute

// saw notes the process of a node, and whether this node saw it begin.
func (o *others) saw(name, process string, begins bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun[name].process == process {
		return
	}
	if o.begun == nil {
		o.begun = map[string]begun{}
	}
	b := begun{process: process}
	if begins {
		b.at = time.Now()
		delete(o.at, name)
	}
	o.begun[name] = b
}

// last returns the node of a list that began last; empty: none has begun a short time ago.
func (o *others) last(names []string) (last string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := time.Now().Add(-rolling)
	for _, name := range names {
		if b := o.begun[name]; b.at.After(at) {
			last, at = name, b.at
		}
	}
	return last
}

// recently is how long a node that has retired is not given sessions. It mostly ends before, and may then begin again.
const recently = time.Minute

func (o *others) retired(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at == nil {
		o.at = map[string]time.Time{}
	}
	o.at[name] = time.Now()
	maps.DeleteFunc(o.at, func(_ string, at time.Time) bool { return time.Since(at) > recently })
}

func (o *others) ends(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.at[name]
	return ok && time.Since(at) <= recently
}

// another returns another node, if possible one that has not said that it retires; empty: there is none. It is the one that began last, if a node
// has begun a short time ago: when all nodes are restarted in turn, that one will not be restarted again.
func (n *Node) another() string {
	list := n.staying()
	if len(list) == 0 {
		list = n.rest()
	}
	if len(list) == 0 {
		return ""
	}
	return cmp.Or(n.others.last(list), list[rand.IntN(len(list))])
}

// staying returns the other nodes that have not said that they retire.
func (n *Node) staying() []string { return slices.DeleteFunc(n.rest(), n.others.ends) }

// rest returns the other nodes, as far as this one knows.
func (n *Node) rest() []string {
	list := n.seen.Load()
	if list == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(*list), func(name string) bool { return name == n.Name })
}

// sees says whether there is a node of a name, as far as this one knows.
func (n *Node) sees(name string) bool {
	list := n.seen.Load()
	return list != nil && slices.Contains(*list, name)
}

// count counts the nodes until stopped is closed. While the State does not answer, the last number stays.
func (n *Node) count() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		<-n.stopped
		stop()
	}()
	for known := false; ctx.Err() == nil; {
		live, all := map[string]bool{}, false
		for c, err := range n.State.Watch(ctx, presencePrefix) {
			if err != nil {
				break // and begin anew
			}
			was := len(live)
			switch {
			case c.Key == "":
				all, known, was = true, true, -1
			case c.Deleted:
				delete(live, c.Key[len(presencePrefix)+1:])
			default: // mostly a renewal
				live[c.Key[len(presencePrefix)+1:]] = true
				n.renewals.at(c.Key, c.Version)
				n.others.saw(c.Key[len(presencePrefix)+1:], process(c.Entry), known)
			}
			if all && len(live) != was {
				names := slices.Collect(maps.Keys(live))
				n.seen.Store(&names)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// renewals are when this node has seen the leases of nodes renewed, by its own clock.
type renewals struct {
	mu   sync.Mutex
	seen map[string]renewal // by key; guarded by mu
}

type renewal struct {
	version uint64
	at      time.Time
}

// at returns when a version of a lease was first seen, which is now if it is another one than the last.
func (r *renewals) at(key string, version uint64) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]renewal{}
	}
	if r.seen[key].version != version {
		r.seen[key] = renewal{version, time.Now()}
	}
	return r.seen[key].at
}

// presencePrefix is what the keys of the leases of nodes begin with.
var presencePrefix = leaseKey("node")

// nodeLease is the name of the lease of a node.
func nodeLease(node string) string { return "node." + node }

// acquire takes the lease of the name. Its value is the name, the process and an id.
func (n *Node) acquire(ctx context.Context) (*Lease, error) {
	if e, err := n.State.Get(ctx, leaseKey(nodeLease(n.Name))); err == nil && process(e) == n.process { // lost, and not expired yet
		_ = n.State.Delete(ctx, e.Key, e.Version) // or it expires
	}
	return Acquire(ctx, n.State, nodeLease(n.Name), n.Name+" "+n.process, presence)
}

// process returns which process has the lease of a node.
func process(lease Entry) string {
	_, id, _ := strings.Cut(string(lease.Value), " ")
	id, _, _ = strings.Cut(id, " ")
	return id
}

// errNotJoined is for what a server does before Join, or without it.
var errNotJoined = errors.New("the node has not joined the others: call Join of the cluster.Node before its server gets requests")

// margin is how long a lease must still be held when something is begun that only its holder may do. With what Lease.safe leaves, others
// take its sessions a second later at the earliest, when it is missing.
const margin = 825 * time.Millisecond

// owns says whether no other node can have taken the sessions of this one.
func (n *Node) owns() bool {
	lease := n.lease.Load()
	return lease != nil && lease.HeldFor(margin)
}

// Check returns [ErrOwner] if another node may have taken the sessions of this one, because it is cut off from the others or was
// stopped for a while. Ask right before something is done for a session that must not be done twice.
func (n *Node) Check() error {
	if !n.owns() {
		return ErrOwner
	}
	return nil
}

// Own is Check, except that it waits while a renewal of the name is only late, for less than a second, and for what is left of the
// time of a request whose client has waited for nodes already.
func (n *Node) Own(ctx context.Context) error {
	var until time.Time
	for {
		lease := n.lease.Load()
		switch {
		case lease == nil:
			return ErrOwner
		case lease.HeldFor(margin):
			return nil
		case !lease.Held():
			return ErrOwner
		case until.IsZero():
			until = time.Now().Add(node.Wait(ctx, time.Second))
		case time.Now().After(until):
			return ErrOwner
		}
		select {
		case <-ctx.Done():
			return ErrOwner
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stay takes the name again when its lease was lost: the State could not be reached for a while.
func (n *Node) stay(lease *Lease) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		<-n.stopped
		stop()
	}()
	for {
		select {
		case <-n.stopped:
			last, end := context.WithTimeout(context.Background(), presence) // then it has ended by itself
			defer end()
			if err := lease.Release(last); err != nil {
				n.Logger.Warn("a node keeps its name for a few seconds after its end", "node", n.Name, "err", err)
			}
			return
		case <-lease.Lost():
		}
		n.lease.Store(nil)
		n.sight.Store(&sight{since: time.Now()})
		n.Logger.Warn("this node was not seen by the others for a while", "node", n.Name)
		var warned time.Time
		for {
			next, err := n.acquire(ctx)
			if err == nil {
				lease = next
				if err = n.verify(ctx); err == nil {
					n.lease.Store(lease)
					n.sight.Store(&sight{seen: true, since: time.Now()})
					break
				}
				_ = lease.Release(ctx) // it ends by itself
			}
			if ctx.Err() != nil {
				return
			}
			if time.Since(warned) > presence {
				n.Logger.Warn("this node is not seen by the others", "node", n.Name, "err", err)
				warned = time.Now()
			}
			select {
			case <-time.After(presence / 10):
			case <-n.stopped:
				return
			}
		}
	}
}

// Leave ends the node: others no longer find it, and requests that they have forwarded get until ctx ends. Its own
// requests are for its http.Server and then the Shutdown of its mcp.Server to end, before Leave. Without a State that answers it takes up to four
// seconds longer, and twelve if a call of the State or the Bus does not end with its context.
func (n *Node) Leave(ctx context.Context) error {
	if n.server == nil {
		return nil
	}
	n.leave()
	n.drain(ctx)
	err := n.server.Shutdown(ctx)
	if err != nil {
		_ = n.server.Close() // the error is that of Shutdown
	}
	_ = n.flush(flushTime) // while the node has its name; that events are lost is logged
	n.leftOnce.Do(func() { close(n.stopped) })
	ended := make(chan struct{})
	go func() {
		n.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(partsTime): // a State or a Bus keeps one of them
		err = errors.Join(err, errParts)
	}
	n.lines.close(time.Now())
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return nil
}

// partsTime bounds how long Leave waits for what the node does beside requests, which ends within the times of the State and the Bus.
const partsTime = 10 * time.Second

var errParts = fmt.Errorf("what it does for the others did not end within %v", partsTime)

const (
	drainTime = time.Second // for other nodes to close their connections to one that leaves
	calmTime  = 100 * time.Millisecond
)

// drain waits, not for long, until no connection of another node is without a request: over one that is closed here, a request may
// just be on its way.
func (n *Node) drain(ctx context.Context) {
	if l, ok := n.listener.(interface{ Drain() error }); ok && ctx.Err() == nil {
		if err := l.Drain(); err != nil {
			n.Logger.Warn("a node that ends may still be asked for connections", "node", n.Name, "err", err)
		}
	}
	n.release() // those too whose requests have ended since Retire
	for end, calm := time.Now().Add(drainTime), time.Now(); ctx.Err() == nil && time.Now().Before(end) && time.Since(calm) < calmTime; {
		if n.waiting.any() {
			calm = time.Now()
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// waiting has the connections of other nodes that have no request.
type waiting struct {
	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu
}

// note is an [http.Server.ConnState].
func (w *waiting) note(c net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state != http.StateNew && state != http.StateIdle {
		delete(w.conns, c)
		return
	}
	if w.conns == nil {
		w.conns = map[net.Conn]bool{}
	}
	w.conns[c] = true
}

func (w *waiting) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns) > 0
}

// Nodes returns the names of the nodes that are seen now, without those that this one has seen for a few seconds, and not renewed: the
// clock of the State may be behind.
func (n *Node) Nodes(ctx context.Context) ([]string, error) {
	var names []string
	for c, err := range n.State.Watch(ctx, presencePrefix) {
		if err != nil {
			return nil, err
		}
		if c.Key == "" {
			break
		}
		// A Watch may begin with what was true a moment ago.
		switch e, err := n.State.Get(ctx, c.Key); {
		case err == nil && time.Since(n.renewals.at(c.Key, e.Version)) > overdue(presence):
		case err == nil:
			names = append(names, c.Key[len(presencePrefix)+1:])
		case !errors.Is(err, ErrNotFound):
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return names, nil
}
