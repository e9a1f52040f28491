package cluster

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/eventmemory"
	"github.com/patchbay-dev/patchbay/store"
)

// Events returns a store for what the streams of legacy sessions carry (mcp.HTTPConfig.Events), beside that of [Node.Sessions]: the node
// that continues a session then sends its client what it has not got of the stream of a call, with its answer, also while
// the call still runs at a node that has given the session up. Each call of Events returns the same one. Call it after State is set.
//
// Events are shared a tenth of a second after they were sent, with 100 nodes a second, for 5 minutes; one of more than 500 KiB is not. They are
// in the State that a method Recent() State of State returns, as those of [Memory] and of NATS do, which keep the newest 64 MiB of all nodes. Without
// the method, or if it returns nil, they are not shared. Neither ids of sessions nor names of streams are seen there, but what events say.
func (n *Node) Events() store.SharedEvents {
	v := &n.events
	v.once.Do(func() {
		v.writing = make(chan struct{}, 1)
		if of, ok := n.State.(interface{ Recent() State }); ok { // without, events would take the room of names and sessions
			v.state = of.Recent()
		}
	})
	return nodeEvents{n}
}

// nodeEvents is the [store.SharedEvents] of a node.
type nodeEvents struct{ node *Node }

// events are those that a node shares.
type events struct {
	once  sync.Once
	state State             // nil: they are not shared
	own   eventmemory.Store // for clients that come back to this node

	mu      sync.Mutex
	fresh   [buckets][]sharedEvent // those that are in no entry yet, oldest first; guarded by mu
	bytes   int                    // of those, and of entries that are not written; guarded by mu
	wake    chan struct{}          // gets a value when there are new ones; nil: nobody waits; guarded by mu
	failing bool                   // the State has not taken the last ones; guarded by mu

	watches [buckets]*bucketWatch // for those who follow streams of others; guarded by mu
	watched atomic.Int64          // bytes of what these keep

	writing chan struct{} // holds a value while a goroutine writes
	last    int           // number of the newest entry; guarded by writing
	entries []*eventEntry // not written yet, oldest first; guarded by writing
}

const (
	// buckets are what streams are put into by their names: an entry of the State has events of many streams, and a node that
	// looks for one does not read all entries.
	buckets = 8
	// gatherTime is how long an event waits for others. With more than 10 nodes it is longer, so that all together write as much as 10.
	gatherTime = 100 * time.Millisecond
	// lastGatherTime is that of a node that retires.
	lastGatherTime = 10 * time.Millisecond
	// maxEventBytes bounds an event that is shared.
	maxEventBytes = 500 << 10
	// maxWaitingBytes bounds what waits for a State that does not answer.
	maxWaitingBytes = 16 << 20
	// entryTries is how often an entry is written before those of other buckets go first.
	entryTries = 3
)

// eventFormat is the version of eventRecord.
const eventFormat = 1

// eventRecord is the value of an entry of the State with events.
type eventRecord struct {
	Format int           `json:"v"`
	Events []sharedEvent `json:"events"`
}

// sharedEvent is an event; without a position it says that its stream was forgotten.
type sharedEvent struct {
	Stream   string          `json:"s"` // a digest of the name
	Position int64           `json:"p,omitempty"`
	Data     json.RawMessage `json:"d,omitempty"` // missing: it was too large
}

// size is about what the event takes in an entry.
func (e *sharedEvent) size() int { return len(e.Data) + 80 }

// eventEntry is an entry of the State that is to be written.
type eventEntry struct {
	bucket int
	key    string
	value  []byte
	bytes  int // as events count them
	tries  int
	at     time.Time
}

// bucket returns where the events of a stream are, and the name that it has there.
func bucket(stream string) (number int, name string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(stream)) // it never fails
	return int(h.Sum32() % buckets), digest("", stream)
}

func bucketKey(number int) string { return "event." + strconv.Itoa(number) }

// Name implements [store.SharedEvents].
func (v nodeEvents) Name(stream string) string {
	return stream + "." + hex.EncodeToString([]byte(v.node.Name)) + "." + v.node.process
}

// ownerOf returns the node and the process that have named a stream.
func ownerOf(stream string) (node, process string, ok bool) {
	rest, process, ok := cutLast(stream, ".")
	if !ok {
		return "", "", false
	}
	_, node, ok = cutLast(rest, ".")
	name, err := hex.DecodeString(node)
	return string(name), process, ok && err == nil && process != "" && Check("key", leaseKey(nodeLease(string(name)))) == nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Append implements [store.Events].
func (v nodeEvents) Append(ctx context.Context, stream string, position int64, event []byte) error {
	if v.node.events.shares(stream) && json.Valid(event) { // as all are that a server sends
		e := sharedEvent{Position: position}
		if len(event) <= maxEventBytes {
			e.Data = bytes.Clone(event)
		}
		v.node.events.add(stream, e)
	}
	return v.node.events.own.Append(ctx, stream, position, event)
}

// After implements [store.Events].
func (v nodeEvents) After(ctx context.Context, stream string, position int64) ([][]byte, error) {
	return v.node.events.own.After(ctx, stream, position)
}

// Forget implements [store.Events].
func (v nodeEvents) Forget(ctx context.Context, stream string) error {
	if v.node.events.shares(stream) && !v.node.retired.Load() { // else nodes that follow the stream see its end soon
		v.node.events.add(stream, sharedEvent{})
	}
	return v.node.events.own.Forget(ctx, stream)
}

// shares reports whether other nodes can find the events of a stream: it was named.
func (v *events) shares(stream string) bool {
	_, _, ok := ownerOf(stream)
	return ok && v.state != nil
}

// add lets the State have an event soon. If too much waits for the State, those that are in no entry yet are lost.
func (v *events) add(stream string, e sharedEvent) {
	var at int
	at, e.Stream = bucket(stream)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fresh[at] = append(v.fresh[at], e)
	v.bytes += e.size()
	for i := 0; v.bytes > maxWaitingBytes && i < buckets; i++ {
		for len(v.fresh[i]) > 0 && v.bytes > maxWaitingBytes {
			v.bytes -= v.fresh[i][0].size()
			v.fresh[i] = v.fresh[i][1:]
		}
	}
	if v.wake != nil {
		select {
		case v.wake <- struct{}{}:
		default:
		}
	}
}

// share writes events to the State until stopped is closed.
func (n *Node) share() {
	v := &n.events
	wake := make(chan struct{}, 1)
	wake <- struct{}{} // some may be there already
	v.mu.Lock()
	v.wake = wake
	v.mu.Unlock()
	for again := (<-chan time.Time)(nil); ; {
		select {
		case <-wake:
		case <-again:
		case <-n.stopped:
			return
		}
		gather := max(gatherTime, time.Duration(n.Seen())*gatherTime/10)
		if n.retired.Load() {
			gather = lastGatherTime
		}
		select {
		case <-time.After(gather):
		case <-n.stopped:
			return
		}
		if again = nil; n.flush(flushTime) != nil {
			again = time.After(time.Second)
		}
	}
}

// flushTime bounds how long a node waits for a State that does not answer, before it lets others go on.
const flushTime = time.Second

// flush writes the events to the State, for a time at most. The error is also logged.
func (n *Node) flush(most time.Duration) error {
	v := &n.events
	if v.state == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), most)
	defer stop()
	select {
	case v.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err() // the State is slow, and the goroutine that writes goes on
	}
	defer func() { <-v.writing }()
	n.collect()
	err := n.write(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil && !v.failing {
		n.Logger.Warn("events of streams wait until the other nodes can have them", "err", err)
	}
	v.failing = err != nil
	return err
}

// collect makes entries of the fresh events; writing is held.
func (n *Node) collect() {
	v := &n.events
	v.mu.Lock()
	fresh := v.fresh
	v.fresh = [buckets][]sharedEvent{}
	v.mu.Unlock()
	for i, list := range fresh {
		for len(list) > 0 {
			count, size := 0, 0
			for count < len(list) && (count == 0 || size+list[count].size() <= maxEventBytes) {
				size += list[count].size()
				count++
			}
			var b bytes.Buffer
			to := json.NewEncoder(&b)
			to.SetEscapeHTML(false)
			_ = to.Encode(eventRecord{eventFormat, list[:count]}) // it is JSON that was checked
			v.last++
			v.entries = append(v.entries, &eventEntry{bucket: i, key: fmt.Sprint(bucketKey(i), ".", n.process, ".", v.last), value: b.Bytes(), bytes: size, at: time.Now()})
			list = list[count:]
		}
	}
}

// write writes the entries; writing is held. When the State has refused one several times, those of other buckets go first. Those of one bucket stay in
// their order: a node that follows a stream takes an event for the next one.
func (n *Node) write(ctx context.Context) error {
	v := &n.events
	for left := len(v.entries); left > 0; left-- {
		e := v.entries[0]
		_, err := v.state.Put(ctx, e.key, e.value, 0, eventmemory.MaxAge)
		if err != nil && !errors.Is(err, ErrConflict) && time.Since(e.at) < eventmemory.MaxAge { // a conflict is with itself: its acknowledgement was lost
			if e.tries++; e.tries >= entryTries {
				v.entries = othersFirst(v.entries, e.bucket)
			}
			return err
		}
		v.entries = v.entries[1:]
		v.mu.Lock()
		v.bytes -= e.bytes
		v.mu.Unlock()
	}
	return nil
}

// othersFirst returns the entries with those of a bucket behind the others.
func othersFirst(entries []*eventEntry, bucket int) []*eventEntry {
	others, own := make([]*eventEntry, 0, len(entries)), []*eventEntry(nil)
	for _, e := range entries {
		if e.bucket == bucket {
			own = append(own, e)
		} else {
			others = append(others, e)
		}
	}
	return append(others, own...)
}
