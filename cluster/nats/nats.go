// Package nats keeps the State and the Bus of a cluster in NATS with JetStream: in servers of its own ([Start]), of which each
// node runs one, or in servers that run elsewhere.
//
// # Guarantees
//
// Those of package cluster. A State lives in a stream of JetStream, of as many replicas as [Options] say: a change is
// acknowledged by a majority of them, and Get asks the leader of the stream. While a majority cannot be reached, changes and
// reads fail when their context ends, and leases are lost.
package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/eventmemory"
)

// Options configure [Open].
type Options struct {
	// Cluster names the cluster. Several may share servers of NATS. Empty: "patchbay".
	Cluster string
	// Replicas of the State, 1, 3 or 5: as many servers less than half of it may fail. Zero: 3 if NATS is a cluster, else 1.
	Replicas int
	// Server is one of this process. Open waits until its copy of the State is whole, if it has one: a server that has just
	// started has none, and does not help when others fail. Nil: Open does not wait.
	Server *Server
	// Listen is where other nodes connect directly, HOST:PORT, so that what they say to each other need not pass NATS. Only a node that
	// knows the cluster is let in, with TLS if NATS has it. Where that cannot be reached, messages pass NATS. Empty: any free port of the
	// address where Server listens for others; without such a Server, everything passes NATS.
	Listen string
	// Memory keeps the State in the memory of the servers. A server that has begun again is then of no use until all others that have
	// a copy answer, and when all of them have stopped, the State is gone. Otherwise it is on their disks.
	Memory bool
}

// Cluster is a [cluster.State] and a [cluster.Bus].
type Cluster struct {
	bus
	state
	recent *state // nil: NATS has no room for it
}

// state is a [cluster.State] in a stream of its own.
type state struct {
	js       jetstream.JetStream
	config   jetstream.StreamConfig
	stream   jetstream.Stream
	subjects string       // what those of the keys begin with
	making   sync.Mutex   // is held while the stream is made again
	took     atomic.Int64 // how long the last attempt took that was answered; see time.Duration
}

// Recent returns a State for what may be lost, [cluster.Node.Events]: it has 64 MiB of NATS for all nodes, or as much as NATS can reserve, and the oldest
// entries go first. It is nil if NATS has no room.
func (c *Cluster) Recent() cluster.State {
	if c.recent == nil {
		return nil
	}
	return c.recent
}

// settle is how long what failed waits before it is tried again.
const settle = 10 * time.Millisecond

// Open joins a cluster over a connection to NATS. It waits until JetStream has the stream of the State, or until ctx ends. That needs a majority
// of the servers, and the first time as many as there are replicas. Close ends what it has begun, and not the connection.
func Open(ctx context.Context, nc *nats.Conn, opts Options) (*Cluster, error) {
	name := opts.Cluster
	if name == "" {
		name = "patchbay"
	}
	if err := cluster.Check("cluster", name); err != nil || strings.Contains(name, ".") {
		return nil, fmt.Errorf("name of the cluster %q: letters, digits, - and _ only", name)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	c := &Cluster{state: state{js: js, subjects: "patchbay." + name + ".state."}}
	c.config = jetstream.StreamConfig{
		Name: "patchbay-" + name + "-state", Description: "State of the nodes of Patchbay",
		Subjects: []string{c.subjects + ">"}, MaxMsgsPerSubject: 1, MaxMsgSize: cluster.MaxValue + 4096,
		Discard: jetstream.DiscardNew, DenyDelete: true, AllowMsgTTL: true, SubjectDeleteMarkerTTL: markers,
		Duplicates: duplicates, Replicas: opts.Replicas, Storage: jetstream.FileStorage,
	}
	if opts.Memory {
		c.config.Storage = jetstream.MemoryStorage
	}
	if c.config.Replicas == 0 {
		c.config.Replicas = 1
		if nc.ConnectedClusterName() != "" {
			c.config.Replicas = 3
		}
	}
	err = attempts(ctx, firstAttempt, func(ctx context.Context) (err error) {
		c.stream, err = js.CreateOrUpdateStream(ctx, c.config)
		if refused := (*jetstream.APIError)(nil); errors.As(err, &refused) && strings.Contains(refused.Description, "storage type") {
			c.stream, err = js.Stream(ctx, c.config.Name) // it stays where it is
		}
		return err
	})
	if err == nil && opts.Server != nil {
		err = opts.Server.whole(ctx, c.config.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("state of the cluster %s in NATS: %w", name, err)
	}
	c.recent = c.openRecent(ctx, name)
	if err := c.open(nc, "patchbay."+name+".", opts); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Bounds of what Recent keeps, in bytes, which NATS reserves.
const (
	mostRecent  = 64 << 20
	leastRecent = 1 << 20
)

// errNoRoom says that NATS has no room for a stream.
var errNoRoom = errors.New("nats: no room for a stream")

// openRecent makes the stream of Recent, as large as NATS has room for; nil: it has none.
func (c *Cluster) openRecent(ctx context.Context, name string) *state {
	r := &state{js: c.js, config: c.config, subjects: "patchbay." + name + ".recent."}
	r.config.Name, r.config.Description = "patchbay-"+name+"-recent", "Events of streams at the nodes of Patchbay"
	r.config.Subjects, r.config.Discard, r.config.SubjectDeleteMarkerTTL = []string{r.subjects + ">"}, jetstream.DiscardOld, 0
	r.config.MaxAge = eventmemory.MaxAge
	for r.config.MaxBytes = mostRecent; r.config.MaxBytes >= leastRecent; r.config.MaxBytes /= 4 {
		err := attempts(ctx, firstAttempt, func(ctx context.Context) (err error) {
			if r.stream, err = c.js.Stream(ctx, r.config.Name); errors.Is(err, jetstream.ErrStreamNotFound) {
				r.stream, err = c.js.CreateStream(ctx, r.config)
			}
			if refused := (*jetstream.APIError)(nil); errors.As(err, &refused) && strings.Contains(refused.Description, "insufficient") {
				return errNoRoom // which NATS calls no peers, as if there were some soon
			}
			return err
		})
		if err == nil {
			return r
		}
		if !errors.Is(err, errNoRoom) && !strings.Contains(err.Error(), "insufficient") && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return nil // this account may not have another stream
		}
	}
	return nil
}

const (
	// markers is how long a Watch that is slow learns which entries are gone.
	markers = time.Minute
	// duplicates is how long a change that is made again, because its acknowledgement was lost, counts once.
	duplicates = 2 * time.Minute
)

// attempts is attempts for what needs the stream, and cannot be under way twice.
func (c *state) attempts(ctx context.Context, f func(ctx context.Context) error) error {
	return attempts(ctx, c.first(), func(ctx context.Context) error { return c.attempt(ctx, f) })
}

// first is how long the first attempt waits: where NATS is slow, three times as long as the last one took that was answered.
func (c *state) first() time.Duration {
	return min(max(firstAttempt, 3*time.Duration(c.took.Load())), lastAttempt)
}

// attempt calls f once, and notes how long that took. Servers that were all restarted have lost the stream, if it was in memory: then it is made
// again, without what was in it.
func (c *state) attempt(ctx context.Context, f func(ctx context.Context) error) error {
	begin := time.Now()
	err := f(ctx)
	if err == nil || final(err) {
		c.took.Store(int64(time.Since(begin)))
	}
	if (errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrNoStreamResponse)) && c.making.TryLock() {
		defer c.making.Unlock()
		_, _ = c.js.CreateStream(ctx, c.config) // the next attempt tells
	}
	return err
}

// asked is ask for what needs the stream of c.
func asked[T any](ctx context.Context, c *state, f func(ctx context.Context) (T, error)) (T, error) {
	return ask(ctx, c.first()/2, func(ctx context.Context) (value T, err error) {
		err = c.attempt(ctx, func(ctx context.Context) error {
			value, err = f(ctx)
			return err
		})
		return value, err
	})
}

const (
	// firstAttempt is how long the first one mostly waits for an answer: NATS leaves requests without one while it has no leader.
	firstAttempt = time.Second / 2
	// lastAttempt bounds later ones.
	lastAttempt = 2 * time.Second
)

// attempts calls f until it works, cannot work, or ctx ends. The first attempt lasts as long as first at most, and each one after an attempt
// without an answer an eighth longer, up to lastAttempt.
func attempts(ctx context.Context, first time.Duration, f func(ctx context.Context) error) error {
	for d := first; ; {
		try, stop := context.WithTimeout(ctx, d)
		err := f(try)
		if try.Err() != nil {
			d = min(d+d/8, lastAttempt)
		}
		stop()
		switch {
		case err == nil, final(err):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		select {
		case <-time.After(settle):
		case <-ctx.Done():
		}
	}
}

// ask is attempts for a request that may be sent again while the one before it has no answer: NATS never answers one that it got before it had
// chosen a leader. The first time that happens after again, and later after an eighth more each time, up to half of lastAttempt. Each request has lastAttempt for
// its answer, which may be late where NATS has just become slow, and the first one that counts is returned.
func ask[T any](ctx context.Context, again time.Duration, f func(ctx context.Context) (T, error)) (none T, err error) {
	type answer struct {
		value T
		err   error
	}
	all, stop := context.WithCancel(ctx)
	defer stop()
	answers := make(chan answer)
	call := func() {
		try, stop := context.WithTimeout(all, lastAttempt)
		defer stop()
		value, err := f(try)
		select {
		case answers <- answer{value, err}:
		case <-all.Done():
		}
	}
	next := time.NewTimer(again)
	defer next.Stop()
	go call()
	for open := 1; ; {
		select {
		case a := <-answers:
			if a.err == nil || final(a.err) {
				return a.value, a.err
			}
			if err, open = a.err, open-1; open == 0 {
				next.Reset(settle)
			}
		case <-next.C:
			go call()
			next.Reset(again)
			if open++; open > 1 {
				again = min(again+again/8, lastAttempt/2)
			}
		case <-ctx.Done(): // calls may go on for a while: when the connection is made again, they wait without an end
			return none, fmt.Errorf("%w (%w)", context.Cause(ctx), cmp.Or(err, errNoAnswer))
		}
	}
}

var errNoAnswer = errors.New("nats: no answer")

// final says whether what failed will fail again.
func final(err error) bool {
	var refused *jetstream.APIError
	if errors.As(err, &refused) {
		switch refused.ErrorCode {
		case jetstream.JSErrCodeStreamNotFound, noPeers, inFlight, sameInFlight:
			return false
		}
		return refused.Code != 503 // without a leader, or enough servers, yet
	}
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrPermissionViolation) ||
		errors.Is(err, cluster.ErrConflict) || errors.Is(err, errNoRoom) || errors.Is(err, jetstream.ErrMsgNotFound)
}

// Codes of errors that pass.
const (
	noPeers      jetstream.ErrorCode = 10005 // too few servers that can hold a stream
	sameInFlight jetstream.ErrorCode = 10158 // a message with the same id is about to be written
	inFlight     jetstream.ErrorCode = 10164 // a message of the same subject is about to be written
)
