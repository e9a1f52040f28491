package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cluster/internal/stream"
)

// nodeAddr is the address of a node.
type nodeAddr string

func (nodeAddr) Network() string  { return "cluster" }
func (a nodeAddr) String() string { return string(a) }

// listener has the connections to a node that wait.
type listener struct {
	m      *Memory
	node   string
	queue  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen implements [Bus].
func (m *Memory) Listen(node string) (net.Listener, error) {
	if err := Check("node", node); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listeners[node] != nil {
		return nil, fmt.Errorf("node %s listens already", node)
	}
	l := &listener{m: m, node: node, queue: make(chan net.Conn), closed: make(chan struct{})}
	if m.listeners == nil {
		m.listeners = map[string]*listener{}
	}
	m.listeners[node] = l
	return l, nil
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "cluster", Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.once.Do(func() {
		l.m.mu.Lock()
		defer l.m.mu.Unlock()
		delete(l.m.listeners, l.node)
		close(l.closed)
	})
	return nil
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return nodeAddr(l.node) }

// Dial implements [Bus].
func (m *Memory) Dial(ctx context.Context, node string) (net.Conn, error) {
	if err := Check("node", node); err != nil {
		return nil, err
	}
	m.mu.Lock()
	l := m.listeners[node]
	m.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("node %s: %w", node, ErrNoNode)
	}
	ctx, stop := context.WithTimeoutCause(ctx, dialTime, errSilent)
	defer stop()
	near, far := pipe(nodeAddr("client"), nodeAddr(node))
	var err error
	select {
	case l.queue <- far:
		return near, nil
	case <-l.closed:
		err = ErrNoNode
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	near.Close()
	far.Close()
	return nil, fmt.Errorf("node %s: %w", node, err)
}

// dialTime is how long a node may take to accept a connection.
const dialTime = 3 * time.Second

var errSilent = fmt.Errorf("it has not answered within %v", dialTime)

// pipe returns two ends that are connected.
func pipe(near, far net.Addr) (a, b *stream.Conn) {
	toA, toB := new(mailbox), new(mailbox)
	a = stream.New(func(m []byte) error { return toB.post(bytes.Clone(m)) }, near, far, toA.close)
	b = stream.New(func(m []byte) error { return toA.post(bytes.Clone(m)) }, far, near, toB.close)
	toA.open(a.Feed)
	toB.open(b.Feed)
	return a, b
}

// Publish implements [Bus].
func (m *Memory) Publish(ctx context.Context, topic string, data []byte) error {
	if err := CheckPut(topic, data, 0); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("topic %s: %w", topic, context.Cause(ctx))
	}
	m.mu.Lock()
	list := slices.Clone(m.subscribers[topic])
	m.mu.Unlock()
	for _, box := range list {
		_ = box.post(bytes.Clone(data)) // nil
	}
	return nil
}

// Subscribe implements [Bus].
func (m *Memory) Subscribe(topic string, f func(data []byte)) (stop func(), err error) {
	if err := Check("topic", topic); err != nil {
		return nil, err
	}
	box := &mailbox{bound: 1000}
	box.open(f)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.subscribers == nil {
		m.subscribers = map[string][]*mailbox{}
	}
	m.subscribers[topic] = append(m.subscribers[topic], box)
	return func() {
		box.close()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.subscribers[topic] = slices.DeleteFunc(m.subscribers[topic], func(b *mailbox) bool { return b == box })
		maps.DeleteFunc(m.subscribers, func(_ string, l []*mailbox) bool { return len(l) == 0 })
	}, nil
}

// mailbox hands messages on in order, in a goroutine of its own while it has some.
type mailbox struct {
	bound int // 0: none

	mu      sync.Mutex
	deliver func([]byte) // guarded by mu
	queue   [][]byte     // guarded by mu
	running bool         // guarded by mu
	closed  bool         // guarded by mu
}

func (b *mailbox) open(deliver func([]byte)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deliver = deliver
}

// post never fails: a mailbox that is full or closed loses the message.
func (b *mailbox) post(message []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.bound > 0 && len(b.queue) >= b.bound {
		return nil
	}
	b.queue = append(b.queue, message)
	if !b.running {
		b.running = true
		go b.run()
	}
	return nil
}

func (b *mailbox) run() {
	for {
		b.mu.Lock()
		if len(b.queue) == 0 {
			b.running, b.queue = false, nil
			b.mu.Unlock()
			return
		}
		message, deliver := b.queue[0], b.deliver
		b.queue = b.queue[1:]
		b.mu.Unlock()
		deliver(message)
	}
}

func (b *mailbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.queue = true, nil
}
