package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/eventmemory"
	"github.com/patchbay-dev/patchbay/store"
)

// Events returns a store for what the streams of legacy sessions carry (mcp.HTTPConfig.Events), beside that of [Node.Sessions]: the node
// that continues a session then sends its client what it has not got of the stream of a call, with its answer, also while
// the call still runs at a node that has given the session up. Each call of Events returns the same one.
//
// Events are in the State after a tenth of a second, with 100 nodes after a second, and for 5 minutes. All nodes
// have 64 MiB there, an equal part each, without the oldest events; one of more than 500 KiB is not among them. The State has what they say, but neither
// ids of sessions nor names of streams.
func (n *Node) Events() store.SharedEvents { return nodeEvents{n} }

// nodeEvents is the [store.SharedEvents] of a node.
type nodeEvents struct{ node *Node }

// events are those that a node shares.
type events struct {
	own eventmemory.Store // for clients that come back to this node

	mu      sync.Mutex
	fresh   [buckets][]sharedEvent // that are not in the State yet, oldest first; guarded by mu
	bytes   int                    // of those; guarded by mu
	wake    chan struct{}          // gets a value when there are new ones; nil: nobody waits; guarded by mu
	failing bool                   // the State has not taken the last ones; guarded by mu

	writing sync.Mutex   // one goroutine at a time writes to the State
	last    int          // number of the newest entry; guarded by writing
	entries []eventEntry // in the State, oldest first; guarded by writing
	written int          // bytes of those; guarded by writing
}

const (
	// buckets are what streams are put into by their names: an entry of the State has events of many streams, and who
	// looks for one does not have to read all entries.
	buckets = 8
	// gatherTime is how long an event waits for others. With more than 10 nodes it is longer, so that all together write as much as 10.
	gatherTime = 100 * time.Millisecond
	// maxEventBytes bounds an event that is shared.
	maxEventBytes = 500 << 10
	// maxSharedBytes bounds what all nodes have in the State, a part for each.
	maxSharedBytes = 64 << 20
	// maxNewBytes bounds what waits for a State that does not answer.
	maxNewBytes = 16 << 20
)

// eventFormat is the version of eventRecord.
const eventFormat = 1

// eventRecord is the value of an entry of the State with events.
type eventRecord struct {
	Format  int           `json:"v"`
	Node    string        `json:"node"`
	Process string        `json:"process"`
	Events  []sharedEvent `json:"events"`
}

// sharedEvent is an event; without a position it says that a stream begins, or has been forgotten.
type sharedEvent struct {
	Stream    string          `json:"s"` // a digest of the name
	Position  int64           `json:"p,omitempty"`
	Forgotten bool            `json:"over,omitempty"`
	Data      json.RawMessage `json:"d,omitempty"`
}

// size is about what the event takes in an entry.
func (e *sharedEvent) size() int { return len(e.Data) + 80 }

// eventEntry is an entry of this node.
type eventEntry struct {
	key     string
	version uint64
	bytes   int
	at      time.Time
}

// bucket returns where the events of a stream are, and the name that it has there.
func bucket(stream string) (number int, name string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(stream)) // it never fails
	return int(h.Sum32() % buckets), digest("", stream)
}

func bucketKey(number int) string { return "event." + strconv.Itoa(number) }

// Begin implements [store.SharedEvents].
func (v nodeEvents) Begin(_ context.Context, stream string) error {
	v.node.events.add(stream, sharedEvent{})
	return nil
}

// Append implements [store.Events].
func (v nodeEvents) Append(ctx context.Context, stream string, position int64, event []byte) error {
	if len(event) <= maxEventBytes {
		v.node.events.add(stream, sharedEvent{Position: position, Data: bytes.Clone(event)})
	}
	return v.node.events.own.Append(ctx, stream, position, event)
}

// After implements [store.Events].
func (v nodeEvents) After(ctx context.Context, stream string, position int64) ([][]byte, error) {
	return v.node.events.own.After(ctx, stream, position)
}

// Forget implements [store.Events].
func (v nodeEvents) Forget(ctx context.Context, stream string) error {
	if !v.node.retired.Load() { // else those who follow the stream see its end soon
		v.node.events.add(stream, sharedEvent{Forgotten: true})
	}
	return v.node.events.own.Forget(ctx, stream)
}

// add lets the State have an event soon. If too much waits for it, the oldest of a bucket is lost.
func (v *events) add(stream string, e sharedEvent) {
	var at int
	at, e.Stream = bucket(stream)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fresh[at] = append(v.fresh[at], e)
	v.bytes += e.size()
	v.bound()
	if v.wake != nil {
		select {
		case v.wake <- struct{}{}:
		default:
		}
	}
}

// bound drops the oldest new events of the largest bucket over the bound; mu is held.
func (v *events) bound() {
	for v.bytes > maxNewBytes {
		most := 0
		for i, list := range v.fresh {
			if len(list) > len(v.fresh[most]) {
				most = i
			}
		}
		for _, e := range v.fresh[most][:(len(v.fresh[most])+1)/2] {
			v.bytes -= e.size()
		}
		v.fresh[most] = slices.Clone(v.fresh[most][(len(v.fresh[most])+1)/2:])
	}
}

// share writes new events to the State until stopped is closed.
func (n *Node) share() {
	wake := make(chan struct{}, 1)
	wake <- struct{}{} // some may be there already
	n.events.mu.Lock()
	n.events.wake = wake
	n.events.mu.Unlock()
	for again := (<-chan time.Time)(nil); ; {
		select {
		case <-wake:
		case <-again:
		case <-n.stopped:
			return
		}
		if !n.retired.Load() {
			select {
			case <-time.After(max(gatherTime, time.Duration(n.Seen())*gatherTime/10)):
			case <-n.stopped:
				return
			}
		}
		if again = nil; n.flush(context.Background()) != nil {
			again = time.After(time.Second)
		}
	}
}

// flushTime bounds how long a node that ends waits for a State that does not answer.
const flushTime = time.Second

// flush writes the new events to the State, until a write fails.
func (n *Node) flush(ctx context.Context) error {
	v := &n.events
	v.writing.Lock()
	defer v.writing.Unlock()
	v.mu.Lock()
	list, taken := v.fresh, v.bytes
	v.fresh, v.bytes = [buckets][]sharedEvent{}, 0
	v.mu.Unlock()
	if taken == 0 {
		return nil
	}
	var failed error
	for i := range list {
		for len(list[i]) > 0 && failed == nil {
			count, size := 0, 0
			for count < len(list[i]) && (count == 0 || size+list[i][count].size() <= maxEventBytes) {
				size += list[i][count].size()
				count++
			}
			if failed = n.writeEvents(ctx, i, list[i][:count], size); failed == nil {
				list[i], taken = list[i][count:], taken-size
			}
		}
	}
	n.trim(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if failed != nil && !v.failing {
		n.Logger.Warn("events of streams wait until the other nodes can have them", "err", failed)
	}
	if v.failing = failed != nil; v.failing { // they are written with the next ones
		for i := range list {
			v.fresh[i] = append(list[i], v.fresh[i]...)
		}
		v.bytes += taken
		v.bound()
	}
	return failed
}

// writeEvents writes an entry; writing is held.
func (n *Node) writeEvents(ctx context.Context, bucket int, list []sharedEvent, size int) error {
	v := &n.events
	value, err := encodeEvents(eventRecord{eventFormat, n.Name, n.process, list})
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	v.last++
	key := fmt.Sprint(bucketKey(bucket), ".", n.process, ".", v.last)
	version, err := n.State.Put(ctx, key, value, 0, eventmemory.MaxAge)
	if err == nil {
		v.entries = append(v.entries, eventEntry{key, version, size, time.Now()})
		v.written += size
	}
	return err
}

func encodeEvents(r eventRecord) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	return b.Bytes(), err
}

// trim removes the oldest entries over the bound, and forgets those that have expired; writing is held.
func (n *Node) trim(ctx context.Context) {
	v := &n.events
	for len(v.entries) > 0 {
		oldest := v.entries[0]
		expired := time.Since(oldest.at) >= eventmemory.MaxAge
		if !expired && v.written <= maxSharedBytes/n.Seen() {
			return
		}
		if !expired {
			ctx, stop := context.WithTimeout(ctx, patience)
			err := n.State.Delete(ctx, oldest.key, oldest.version)
			if stop(); err != nil && !errors.Is(err, ErrConflict) {
				return // the next time
			}
		}
		v.entries = v.entries[1:]
		v.written -= oldest.bytes
	}
}

const (
	// followPoll is how often it is looked whether the node of a stream lives.
	followPoll = 500 * time.Millisecond
	// followTries is how often a watch of the State is begun anew.
	followTries = 10
)

// Follow implements [store.SharedEvents].
func (v nodeEvents) Follow(ctx context.Context, stream string, position int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		f := &follower{node: v.node, yield: yield, position: position}
		f.bucket, f.stream = bucket(stream)
		live, stop := context.WithCancel(ctx)
		defer stop()
		watching := sync.OnceFunc(func() { go f.node.untilDead(live, stop, f.owner, f.process) })
		err := f.watch(live, watching)
		for failures := 0; err != nil && !f.over && live.Err() == nil && failures < followTries; failures++ {
			select {
			case <-time.After(followPoll):
			case <-live.Done():
			}
			err = f.watch(live, watching)
		}
		if !f.over && ctx.Err() == nil && live.Err() != nil { // its node has ended: these are the last ones
			f.last = true
			err = f.watch(ctx, watching)
		}
		if !f.over && err != nil {
			yield(store.Event{}, err)
		}
	}
}

// follower reads a stream.
type follower struct {
	node     *Node
	yield    func(store.Event, error) bool
	bucket   int
	stream   string
	position int64 // of the last one that was read

	owner, process string // of the stream; empty: not known
	last           bool   // no later ones come
	over           bool   // nothing is to be yielded
}

// watch yields the events of the stream that are there, and then those that come. It calls live when those that are there have
// been yielded.
func (f *follower) watch(ctx context.Context, live func()) error {
	var first []sharedEvent
	known, forgotten := false, false
	for c, err := range f.node.State.Watch(ctx, bucketKey(f.bucket)) {
		if err != nil {
			return err
		}
		if c.Key == "" {
			slices.SortStableFunc(first, func(a, b sharedEvent) int { return cmp.Compare(a.Position, b.Position) })
			for _, e := range first {
				if f.pass(e); f.over {
					return nil
				}
			}
			if f.over = f.last || !f.yield(store.Event{}, nil) || forgotten || f.owner == ""; f.over {
				return nil
			}
			known = true
			live()
			continue
		}
		list, err := f.of(c)
		if err != nil {
			return err
		}
		for _, e := range list {
			switch {
			case e.Forgotten:
				forgotten = true
			case known:
				f.pass(e)
			default:
				first = append(first, e)
			}
		}
		if f.over = f.over || known && forgotten; f.over {
			return nil
		}
	}
	return nil
}

// of returns the events of the stream in an entry.
func (f *follower) of(c Change) (list []sharedEvent, err error) {
	if c.Deleted {
		return nil, nil
	}
	var r eventRecord
	if err := json.Unmarshal(c.Value, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Key, err)
	}
	if r.Format > eventFormat {
		return nil, fmt.Errorf("%s has format %d, this node knows %d: update this node", c.Key, r.Format, eventFormat)
	}
	for _, e := range r.Events {
		if e.Stream == f.stream {
			f.owner, f.process = r.Node, r.Process
			list = append(list, e)
		}
	}
	return list, nil
}

// pass yields an event that was not yielded before.
func (f *follower) pass(e sharedEvent) {
	if f.over || e.Position == 0 || e.Position <= f.position {
		return
	}
	f.position = e.Position
	f.over = !f.yield(store.Event{Position: e.Position, Data: e.Data}, nil)
}

// untilDead calls stop when a process of a node has ended.
func (n *Node) untilDead(ctx context.Context, stop func(), node, process string) {
	for {
		if lives, err := n.lives(ctx, node, process); err == nil && !lives {
			stop()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(followPoll):
		}
	}
}
