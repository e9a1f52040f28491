package limit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

// A Group is several processes that have their limits together, such as the nodes of a cluster. Each allows its part, and
// always one request at least, so that a bound that is less than the number of processes is that number. At first the parts are equal. With a
// Bus they follow the requests: where a caller is near a limit, the process gets what the others do not need, within
// half a second, and nine tenths of the whole if all requests come to it.
//
// Its fields are set before Join and before the first request of its limiters, and not changed afterwards. Limiters of one
// process that have the same limit have the same part of it.
type Group struct {
	// Nodes counts the processes, this one included. It is asked with each request. Required. A cluster.Node is one.
	Nodes interface{ Seen() int }
	// Bus carries what the processes tell each other. Nil: the parts stay equal.
	Bus Bus

	self uint64        // tells this process from the others
	wake chan struct{} // has a value when there is something to tell

	mu    sync.Mutex
	known map[uint64]*standing // limits of callers who use them, here or near them at another process, by their hashes; guarded by mu
}

// A Bus gives data to all processes of a [Group]; the one that publishes may get it, too. A cluster.Bus is one.
type Bus interface {
	// Publish sends at most 512 KiB.
	Publish(ctx context.Context, topic string, data []byte) error
	// Subscribe calls f, one call at a time, with what is published from now on.
	Subscribe(topic string, f func(data []byte)) (stop func(), err error)
}

const (
	topic = "limits"

	tellTime  = time.Second            // between two messages
	wakeTime  = 200 * time.Millisecond // the same if there is news
	soonTime  = time.Second            // after which the others have answered
	againTime = 3 * time.Second        // after which a process says what has not changed
	validTime = 7 * time.Second        // after which it is not believed any more

	maxKnown   = maxBuckets
	maxClaims  = 8192 // of a message
	claimBytes = 8 + 4 + 2 + 2
	headBytes  = 1 + 8
	format     = 1 // the version of messages; those of others are not read
)

// Join begins to tell the other processes which callers are near a limit, and to hear the same of them, until leave is called. A
// group without a Bus has nothing to begin. If the Bus fails, the parts are equal after seven seconds.
func (g *Group) Join() (leave func(), err error) {
	if g.Bus == nil {
		return func() {}, nil
	}
	var self [8]byte
	_, _ = rand.Read(self[:]) // never fails
	g.self = binary.BigEndian.Uint64(self[:])
	g.wake = make(chan struct{}, 1)
	deaf, err := g.Bus.Subscribe(topic, g.hear)
	if err != nil {
		return nil, fmt.Errorf("limit: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.run(ctx)
	}()
	return func() {
		stop()
		<-ended
		deaf()
	}, nil
}

// run tells the others what is new until ctx ends.
func (g *Group) run(ctx context.Context) {
	every := time.NewTicker(tellTime)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		case <-g.wake:
		}
		for _, m := range g.tell(time.Now()) {
			ctx, stop := context.WithTimeout(ctx, tellTime)
			_ = g.Bus.Publish(ctx, topic, m) // the others do not believe for long what they heard last
			stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(wakeTime):
		}
	}
}

func (g *Group) news() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// count returns how many processes there are.
func (g *Group) count() int {
	if g == nil {
		return 1
	}
	return max(1, g.Nodes.Seen())
}

// hash returns what the processes call a limit of a caller.
func (b *bucket) hash() uint64 {
	if b.hashed == 0 {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s\x00%s", b.kind, b.who, b.tool, b.rate))
		b.hashed = binary.BigEndian.Uint64(sum[:])
	}
	return b.hashed
}

// fit gives a bucket the part of its limit that this process has now.
func (g *Group) fit(b *bucket, now time.Time) {
	b.equal = 1 / float64(g.count())
	part, gain := b.equal, 0.0
	if g.tells() {
		g.mu.Lock()
		if b.standing != nil && b.standing.over {
			b.standing = nil
		}
		if b.standing == nil {
			b.standing = g.known[b.hash()]
		}
		if s := b.standing; s != nil {
			s.recount(g.count())
			part, gain = s.part, s.gain
			s.gain = 0
		}
		g.mu.Unlock()
	}
	b.fit(now, part, gain)
}

// tells reports whether the parts follow the requests.
func (g *Group) tells() bool { return g != nil && g.wake != nil }

// note notes that a request was counted by a bucket or refused.
func (g *Group) note(b *bucket, now time.Time, running float64) {
	if !g.tells() {
		return
	}
	fill := b.fill(now)
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.standing == nil {
		if len(g.known) >= maxKnown {
			return // its parts stay equal
		}
		b.standing = g.begin(b.hash())
	}
	s := b.standing
	s.use(now, b.rate, fill, running)
	if s.near.IsZero() && (fill < 0.5 || running >= b.part/2) {
		s.near = now
		g.news()
	}
}

// soon returns the time after which a refused request may come again, at most wait: the others are about to say whether they take less.
func (g *Group) soon(b *bucket, now time.Time, wait time.Duration) time.Duration {
	if !g.tells() || b.standing == nil {
		return wait
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := b.standing; s.nodes > 1 && now.Sub(s.near) < soonTime {
		return min(wait, soonTime)
	}
	return wait
}

// ended notes that a request which a bucket had counted has ended.
func (g *Group) ended(b *bucket, running float64) {
	if b.standing == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b.standing.busy = running
}

// begin begins a standing. mu is held.
func (g *Group) begin(hash uint64) *standing {
	s := g.known[hash]
	if s == nil {
		s = &standing{nodes: g.count(), fill: 1}
		s.part = 1 / float64(s.nodes)
		if g.known == nil {
			g.known = map[uint64]*standing{}
		}
		g.known[hash] = s
	}
	return s
}

// tell returns what is new, in messages.
func (g *Group) tell(now time.Time) (messages [][]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.count()
	var m []byte
	for hash, s := range g.known {
		s.recount(n)
		s.weigh(now)
		if s.quiet(now) {
			s.over = true
			delete(g.known, hash)
			continue
		}
		if s.near.IsZero() && len(s.others) == 0 {
			continue
		}
		c := s.claim(now)
		if !c.news(s.told) && now.Sub(s.told.at) < againTime {
			continue
		}
		s.told = c
		if m == nil {
			m = g.message()
		}
		m = c.append(m, hash)
		if len(m) >= headBytes+maxClaims*claimBytes {
			messages, m = append(messages, m), nil
		}
	}
	if m != nil {
		messages = append(messages, m)
	}
	return messages
}

func (g *Group) message() []byte {
	return binary.BigEndian.AppendUint64([]byte{format}, g.self)
}

// hear takes what another process tells.
func (g *Group) hear(data []byte) {
	if len(data) < headBytes || data[0] != format || (len(data)-headBytes)%claimBytes != 0 {
		return
	}
	from := binary.BigEndian.Uint64(data[1:])
	if from == g.self {
		return
	}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.count()
	for rest := data[headBytes:]; len(rest) > 0; rest = rest[claimBytes:] {
		hash, c := readClaim(rest, now)
		if g.known[hash] == nil && (c.used == 0 || len(g.known) >= maxKnown) {
			continue
		}
		s := g.begin(hash)
		s.recount(n)
		if s.others == nil {
			s.others = map[uint64]claim{}
		}
		s.others[from] = c
		s.weigh(now)
		if s.claim(now).news(s.told) {
			g.news()
		}
	}
}
