package nats

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/internal/stream"
)

const (
	// beat is how often a node whose connections are open is asked whether it lives.
	beat = 500 * time.Millisecond
	// answered is within what time it has to answer.
	answered = 1500 * time.Millisecond
	// greeting is how long a node may take to answer a Dial.
	greeting = 3 * time.Second
	// begin is how long a connection may take from the answer to Dial to its first message.
	begin = 10 * time.Second
	// backlog is how many connections may wait for Accept. Those of a larger burst are dialled again.
	backlog = 1024
	// acceptsHeader of the answer to a Dial says that the connection begins on that side too, when it is accepted. Older processes
	// do not say so.
	acceptsHeader = "Patchbay-Accepts"
)

// bus has one subscription for the messages of all its connections. A process has an id, so that one that was started anew
// under the name of a dead one is not taken for it.
type bus struct {
	nc     *nats.Conn
	prefix string // of all subjects
	id     string
	subs   []*nats.Subscription
	ctx    context.Context
	end    context.CancelFunc

	mu     sync.Mutex
	conns  map[string]*conn // by id; guarded by mu
	peers  map[string]*peer // by the id of the process; guarded by mu
	listen map[string]bool  // guarded by mu

	links links
}

// conn is one end of a connection.
type conn struct {
	*stream.Conn
	peer   string               // the id of the other process
	other  string               // the id of the other end
	link   atomic.Pointer[link] // nil: its messages go over NATS
	accept func()               // nil when its first message has come; guarded by the mutex of the bus
	got    uint64               // messages that the other end has got for sure; used by watch alone
	absent int                  // beats in a row in which the other end was not there; used by watch alone
}

// peer is another process to which connections are open.
type peer struct {
	conns int // guarded by the mutex of the bus
	stop  context.CancelFunc
}

func (b *bus) open(nc *nats.Conn, prefix string, opts Options) error {
	b.nc, b.prefix, b.id = nc, prefix, rand.Text()
	b.conns, b.peers, b.listen = map[string]*conn{}, map[string]*peer{}, map[string]bool{}
	b.ctx, b.end = context.WithCancel(context.Background())
	messages, err := nc.Subscribe(b.inbox(b.id, "*"), b.feed)
	if err != nil {
		return err
	}
	b.subs = append(b.subs, messages)
	// Windows of connections bound what waits here.
	if err := messages.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	beats, err := nc.Subscribe(b.beats(b.id), func(m *nats.Msg) { _ = m.Respond(b.seen(m.Data)) })
	if err != nil {
		return err
	}
	b.subs = append(b.subs, beats)
	go b.interrupted(nc.StatusChanged(nats.RECONNECTING))
	if err := nc.Flush(); err != nil {
		return err
	}
	return b.listenLinks(opts)
}

// interrupted ends all connections over NATS when that to NATS breaks: messages may be lost, the last one of a connection too, which
// no other one would show.
func (b *bus) interrupted(broken chan nats.Status) {
	defer b.nc.RemoveStatusListener(broken)
	for {
		select {
		case <-b.ctx.Done():
			return
		case _, ok := <-broken:
			if !ok {
				return
			}
			for _, c := range b.overNATS("") {
				c.Fail(errors.New("the connection to NATS broke"))
			}
		}
	}
}

func (b *bus) inbox(process, conn string) string { return b.prefix + "to." + process + "." + conn }
func (b *bus) beats(process string) string       { return b.prefix + "beat." + process }
func (b *bus) dials(node string) string          { return b.prefix + "node." + node }
func (b *bus) topic(topic string) string         { return b.prefix + "topic." + topic }

// Close ends all connections and listeners.
func (b *bus) Close() error {
	b.end()
	var list []error
	for _, s := range b.subs {
		if err := s.Unsubscribe(); !errors.Is(err, nats.ErrConnectionClosed) {
			list = append(list, err)
		}
	}
	b.mu.Lock()
	conns := b.conns
	b.conns = map[string]*conn{}
	b.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	b.closeLinks()
	return errors.Join(list...)
}

// feed hands a message that came over NATS to its connection.
func (b *bus) feed(m *nats.Msg) {
	b.deliver([]byte(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]), m.Data, nil)
}

// deliver hands a message to its connection, which answers the way the first one came: over a link, or, if that is nil, over NATS.
func (b *bus) deliver(id, message []byte, over *link) {
	b.mu.Lock()
	c := b.conns[string(id)]
	var accept func()
	if c != nil {
		accept, c.accept = c.accept, nil
	}
	if accept != nil && over != nil {
		over.users.Add(1)
		c.link.Store(over)
		b.unwatch(c.peer)
	}
	b.mu.Unlock()
	if c == nil {
		return // it is over on this side
	}
	c.Feed(message)
	if accept != nil {
		accept()
	}
}

// The two ends of a connection, both of which may be in one process, have its id and one of these.
const (
	near = "-n" // the end that dialled
	far  = "-f"
)

// add begins a connection with another process, over a link or NATS.
func (b *bus) add(id, process, other string, local, remote net.Addr, over *link, accept func(*stream.Conn)) *conn {
	subject := b.inbox(process, other)
	c := &conn{peer: process, other: other}
	send := func(m []byte) error {
		if l := c.link.Load(); l != nil {
			return l.send(other, m)
		}
		return b.nc.Publish(subject, m)
	}
	c.Conn = stream.New(send, local, remote, func() { b.remove(id) })
	if accept != nil {
		c.accept = func() { accept(c.Conn) }
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[id] = c
	if over != nil {
		c.link.Store(over)
		return c
	}
	p := b.peers[process]
	if p == nil {
		ctx, stop := context.WithCancel(b.ctx)
		p = &peer{stop: stop}
		b.peers[process] = p
		go b.watch(ctx, process)
	}
	p.conns++
	return c
}

func (b *bus) remove(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.conns[id]
	if c == nil {
		return
	}
	delete(b.conns, id)
	if l := c.link.Load(); l != nil {
		l.users.Add(-1)
		return
	}
	b.unwatch(c.peer)
}

// unwatch says that a process has one connection less over NATS. The caller holds mu.
func (b *bus) unwatch(process string) {
	if p := b.peers[process]; p != nil {
		if p.conns--; p.conns == 0 {
			p.stop()
			delete(b.peers, process)
		}
	}
}

// overNATS returns the connections over NATS to a process; empty: to all.
func (b *bus) overNATS(process string) (list []*conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		if c.link.Load() == nil && (process == "" || c.peer == process) {
			list = append(list, c)
		}
	}
	return list
}

// leave ends a connection whose other end said nothing.
func (b *bus) leave(id string) {
	b.mu.Lock()
	c := b.conns[id]
	b.mu.Unlock()
	if c != nil {
		c.Fail(errors.New("whoever dialled has left"))
	}
}

// watch ends the connections to a process that does not answer, and those whose messages were lost on the way, which nothing else
// would show if they were the last ones.
func (b *bus) watch(ctx context.Context, process string) {
	before := map[*conn]uint64{} // sent until the beat before
	for {
		now := b.unconfirmed(process)
		var ask strings.Builder
		for c := range now {
			ask.WriteString(c.other + "\n")
		}
		try, stop := context.WithTimeout(ctx, answered)
		answer, err := b.nc.RequestWithContext(try, b.beats(process), []byte(ask.String()))
		stop()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			b.fail(process, err)
			return
		}
		got := map[string]uint64{}
		for line := range strings.Lines(string(answer.Data)) {
			id, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if n, err := strconv.ParseUint(number, 10, 64); err == nil {
				got[id] = n
			}
		}
		for c := range now {
			n, there := got[c.other]
			c.got = max(c.got, n)
			if c.absent++; there {
				c.absent = 0
			}
			if sent, asked := before[c]; asked && there && n < sent || c.absent > 1 { // once, its last message may be under way
				c.Fail(errors.New("messages were lost on the way"))
			}
		}
		before = now
		select {
		case <-time.After(beat):
		case <-ctx.Done():
			return
		}
	}
}

// unconfirmed returns the connections to a process that has not said that it got all of their messages, with the numbers of these.
func (b *bus) unconfirmed(process string) map[*conn]uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := map[*conn]uint64{}
	for _, c := range b.conns {
		if c.peer != process || c.link.Load() != nil || len(list) == maxAsked {
			continue
		}
		if n, live := c.Sent(); live && n > c.got {
			list[c] = n
		}
	}
	return list
}

// maxAsked bounds the connections in a beat, whose answer is at most 64 KiB then.
const maxAsked = 1000

// seen answers a beat: for each end of a connection here, the number of messages that have come.
func (b *bus) seen(ask []byte) []byte {
	var answer []byte
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range bytes.Lines(ask) {
		id := string(bytes.TrimSuffix(line, []byte("\n")))
		if c := b.conns[id]; c != nil {
			answer = fmt.Appendf(answer, "%s %d\n", id, c.Seen())
		}
	}
	return answer
}

func (b *bus) fail(process string, err error) {
	for _, c := range b.overNATS(process) {
		c.Fail(fmt.Errorf("%w (%w)", cluster.ErrNoNode, err))
	}
}

// addr is the address of a node.
type addr string

func (addr) Network() string  { return "nats" }
func (a addr) String() string { return string(a) }

// Dial implements [cluster.Bus].
func (b *bus) Dial(ctx context.Context, node string) (net.Conn, error) {
	if err := cluster.Check("node", node); err != nil {
		return nil, err
	}
	try, stop := context.WithTimeoutCause(ctx, greeting, errSilent)
	defer stop()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		c, err := b.dial(try, node)
		if err == nil {
			return c, nil
		}
		if refused := (*refusedError)(nil); errors.As(err, &refused) {
			select {
			case <-time.After(wait + mrand.N(wait)):
				continue
			case <-try.Done():
			}
		} else if try.Err() != nil {
			err = context.Cause(try)
		}
		return nil, fmt.Errorf("node %s: %w", node, err)
	}
}

var errSilent = fmt.Errorf("it has not answered within %v", greeting)

// refusedError says that a node has not accepted a connection. It may accept the next one.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// dial makes one attempt, until the node has accepted the connection: before, what is sent may not be served, and nobody would know.
func (b *bus) dial(ctx context.Context, node string) (net.Conn, error) {
	id, answer, err := b.greet(ctx, node)
	if err != nil {
		return nil, err
	}
	process, refused, _ := strings.Cut(string(answer.Data), " ")
	if refused != "" {
		return nil, &refusedError{errors.New(refused)}
	}
	c := b.add(id+near, process, id+far, addr(b.id), addr(node), b.linked(ctx, process, answer.Header.Get(linkHeader)), nil)
	if err := c.Begin(); err != nil {
		c.Fail(err)
		return nil, err
	}
	if answer.Header.Get(acceptsHeader) == "" {
		return c.Conn, nil
	}
	if err := c.Await(ctx); err != nil {
		c.Close()
		if ctx.Err() == nil {
			err = &refusedError{err}
		}
		return nil, err
	}
	return c.Conn, nil
}

// greet asks a node for a connection. A request that was sent to a node as it died gets no answer; the next one learns at once that
// nobody listens.
func (b *bus) greet(ctx context.Context, node string) (id string, answer *nats.Msg, err error) {
	for _, wait := range []time.Duration{greeting / 6, greeting - greeting/6} {
		id = rand.Text() // a node that answers late has two connections, one of which it gives up
		try, stop := context.WithTimeout(ctx, wait)
		answer, err = request(try, b.nc, &nats.Msg{Subject: b.dials(node), Data: []byte(b.id + " " + id)})
		late := err != nil && try.Err() != nil && ctx.Err() == nil // it may have died, be about to end, or be busy
		stop()
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return "", nil, cluster.ErrNoNode
		case !late:
			return id, answer, err
		}
	}
	return "", nil, errSilent
}

// request sends a request, and returns when its context ends also while the connection is made again, in which its methods wait without an end.
func request(ctx context.Context, nc *nats.Conn, msg *nats.Msg) (*nats.Msg, error) {
	type answer struct {
		msg *nats.Msg
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		msg, err := nc.RequestMsgWithContext(ctx, msg)
		answered <- answer{msg, err}
	}()
	select {
	case a := <-answered:
		return a.msg, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// listener has the connections to a node that wait.
type listener struct {
	bus    *bus
	node   string
	sub    *nats.Subscription
	queue  chan *stream.Conn
	closed chan struct{}
	once   sync.Once
	deaf   sync.Once
}

// Listen implements [cluster.Bus].
func (b *bus) Listen(node string) (net.Listener, error) {
	if err := cluster.Check("node", node); err != nil {
		return nil, err
	}
	b.mu.Lock()
	again := b.listen[node]
	b.listen[node] = true
	b.mu.Unlock()
	if again {
		return nil, fmt.Errorf("node %s listens already", node)
	}
	l := &listener{bus: b, node: node, queue: make(chan *stream.Conn, backlog), closed: make(chan struct{})}
	var err error
	if l.sub, err = b.nc.QueueSubscribe(b.dials(node), "patchbay", l.dialled); err == nil {
		err = b.nc.Flush()
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("node %s: %w", node, err)
	}
	context.AfterFunc(b.ctx, func() { l.Close() })
	return l, nil
}

// dialled answers a Dial. The connection waits for Accept from its first message on: whoever dialled may have left.
func (l *listener) dialled(m *nats.Msg) {
	process, id, _ := strings.Cut(string(m.Data), " ")
	if cluster.Check("process", process) != nil || cluster.Check("connection", id) != nil {
		return
	}
	if len(l.queue) == backlog {
		_ = m.Respond([]byte(l.bus.id + " has no room for more connections"))
		return
	}
	late := time.AfterFunc(begin, func() { l.bus.leave(id + far) })
	c := l.bus.add(id+far, process, id+near, addr(l.node), addr(process), nil, func(c *stream.Conn) {
		late.Stop()
		select {
		case l.queue <- c:
		default:
			c.Fail(errors.New("no room for more connections"))
		}
		select {
		case <-l.closed:
			l.clear()
		default:
		}
	})
	answer := &nats.Msg{Data: []byte(l.bus.id), Header: nats.Header{acceptsHeader: {"1"}}}
	if offer := l.bus.links.offer; offer != "" {
		answer.Header.Set(linkHeader, offer)
	}
	if err := m.RespondMsg(answer); err != nil {
		c.Fail(err)
	}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		_ = c.Begin() // an error is that of the next read, too
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "nats", Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Drain makes further dials fail. Connections of dials that were answered are still accepted, until Close.
func (l *listener) Drain() (err error) {
	l.deaf.Do(func() {
		if l.sub != nil {
			if err = l.sub.Unsubscribe(); err == nil && l.bus.ctx.Err() == nil {
				err = l.bus.nc.Flush()
			}
		}
	})
	return err
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	var err error
	l.once.Do(func() {
		err = l.Drain()
		l.bus.mu.Lock()
		delete(l.bus.listen, l.node)
		l.bus.mu.Unlock()
		close(l.closed)
		l.clear()
	})
	return err
}

// clear closes the connections that nobody will accept.
func (l *listener) clear() {
	for {
		select {
		case c := <-l.queue:
			c.Close()
		default:
			return
		}
	}
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return addr(l.node) }

// Publish implements [cluster.Bus].
func (b *bus) Publish(ctx context.Context, topic string, data []byte) error {
	if err := cluster.CheckPut(topic, data, 0); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("topic %s: %w", topic, context.Cause(ctx))
	}
	return b.nc.Publish(b.topic(topic), data)
}

// Subscribe implements [cluster.Bus].
func (b *bus) Subscribe(topic string, f func(data []byte)) (stop func(), err error) {
	if err := cluster.Check("topic", topic); err != nil {
		return nil, err
	}
	s, err := b.nc.Subscribe(b.topic(topic), func(m *nats.Msg) { f(m.Data) })
	if err == nil {
		err = b.nc.Flush()
	}
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", topic, err)
	}
	return func() { _ = s.Unsubscribe() }, nil // an error says that it has ended already
}
