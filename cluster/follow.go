package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/eventmemory"
	"github.com/patchbay-dev/patchbay/store"
)

const (
	// followPoll is how often it is looked whether the process of a stream lives.
	followPoll = 500 * time.Millisecond
	// followGrace is how long it has to be without its name.
	followGrace = time.Second
	// followTries is how often in turn the State may fail.
	followTries = 10
	// followTime is how long a stream is followed whose process lives and tells nothing; its client then comes again.
	followTime = 5 * time.Minute
)

// Follow implements [store.SharedEvents].
func (v nodeEvents) Follow(ctx context.Context, stream string, position int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		owner, process, ok := ownerOf(stream)
		if !ok || v.node.events.state == nil {
			yield(store.Event{}, nil)
			return
		}
		f := &follower{node: v.node, yield: yield, position: position}
		f.bucket, f.stream = bucket(stream)
		live, stop := context.WithCancel(ctx)
		defer stop()
		var dead atomic.Bool
		go v.node.untilDead(live, owner, process, func() { dead.Store(true); stop() })
		f.quiet = time.AfterFunc(followTime, func() { f.idle.Store(true); stop() })
		defer f.quiet.Stop()
		for failures := 0; !f.over && ctx.Err() == nil; {
			during := live
			if f.last = dead.Load(); f.last { // all that the process has shared is there now
				during = ctx
			}
			whole, err := f.read(during)
			if whole {
				failures = 0
			}
			if f.idle.Load() && !f.over {
				yield(store.Event{}, errIdle)
				return
			}
			if err == nil {
				continue
			}
			if failures++; failures == followTries {
				yield(store.Event{}, err)
				return
			}
			select {
			case <-time.After(followPoll):
			case <-ctx.Done():
			}
		}
	}
}

// untilDead calls f when a process has ended.
func (n *Node) untilDead(ctx context.Context, node, process string, f func()) {
	for gone := (time.Time{}); ; {
		switch lives, err := n.lives(ctx, node, process); {
		case err != nil || lives:
			gone = time.Time{}
		case gone.IsZero():
			gone = time.Now()
		case time.Since(gone) >= followGrace: // else it may be about to take its name again
			f()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(followPoll):
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
	last     bool  // no later ones come
	over     bool  // nothing is to be yielded

	quiet *time.Timer // sets idle
	idle  atomic.Bool // nothing has come for followTime
}

var errIdle = fmt.Errorf("nothing has come for %v", followTime)

// read yields the events of the stream that are there, and then those that come, until the stream or ctx ends. It reports whether all that are there
// have been yielded. The error is that of the State.
func (f *follower) read(ctx context.Context) (whole bool, err error) {
	r, begins := f.node.watch(f.bucket)
	defer f.node.unwatch(r, f.stream)
	if !begins {
		if err := f.node.fresh(ctx, r); ctx.Err() != nil {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	for number := 0; ; {
		s := r.of(f.stream, number)
		switch {
		case s.err != nil:
			return whole, s.err
		case s.whole:
			if n := len(s.events); n > 0 {
				number = s.events[n-1].number
			}
			if !whole {
				slices.SortStableFunc(s.events, func(a, b readEvent) int { return cmp.Compare(a.Position, b.Position) })
			}
			forgotten := false
			for _, e := range s.events {
				if e.Position == 0 {
					forgotten = true
				} else if f.pass(e.sharedEvent); f.over {
					return true, nil
				}
			}
			if !whole {
				whole = true
				f.over = !f.yield(store.Event{}, nil)
			}
			if f.over = f.over || f.last || forgotten; f.over {
				return true, nil
			}
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return whole, nil
		}
	}
}

// pass yields an event that was not yielded before.
func (f *follower) pass(e sharedEvent) {
	if e.Position <= f.position {
		return
	}
	f.position = e.Position
	f.quiet.Reset(followTime)
	f.over = !f.yield(store.Event{Position: e.Position, Data: e.Data}, nil)
}

// bucketWatch is a watch of the entries of a bucket, which all that follow streams of the bucket share: many clients come back at
// once when a node has died.
type bucketWatch struct {
	bucket int
	stop   context.CancelFunc
	total  *atomic.Int64 // bytes of the entries of all watches of the node
	users  int           // guarded by mu of events

	mu      sync.Mutex
	streams map[string][]readEvent   // in the order in which they came; guarded by mu
	order   []readEntry              // oldest first; guarded by mu
	unread  int                      // entries that cannot be read; guarded by mu
	last    int                      // number of the newest event; guarded by mu
	whole   bool                     // all entries are here that were there when it began; guarded by mu
	err     error                    // it has ended; guarded by mu
	changed map[string]chan struct{} // closed when a stream has another event; of "", when all are here; all, when it has ended; guarded by mu
	marks   map[string]chan struct{} // closed when an entry has come, by its key; guarded by mu
}

// readEvent is an event that a watch has read.
type readEvent struct {
	sharedEvent
	number int
}

// readEntry is an entry that a watch has read.
type readEntry struct {
	streams []string // of its events
	bytes   int
	at      time.Time
	value   []byte // of an entry that cannot be read; nil: it can
	err     error  // why
}

const (
	// watchIdle is how long a watch goes on that nobody uses.
	watchIdle = 5 * time.Second
	// watchBytes bounds what the watches of a node keep: as much as the State does.
	watchBytes = maxRecentBytes
)

// watch returns the watch of a bucket, for unwatch to give back, and whether it begins now.
func (n *Node) watch(bucket int) (r *bucketWatch, begins bool) {
	v := &n.events
	v.mu.Lock()
	defer v.mu.Unlock()
	r = v.watches[bucket]
	if begins = r == nil || r.ended(); begins {
		r = n.newWatch(bucket)
		v.watches[bucket] = r
	}
	r.users++
	return r, begins
}

// unwatch gives the watch of a stream back.
func (n *Node) unwatch(r *bucketWatch, stream string) {
	r.mu.Lock()
	if c := r.changed[stream]; c != nil { // another one that follows the stream looks again
		close(c)
		delete(r.changed, stream)
	}
	r.mu.Unlock()
	v := &n.events
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.users--; r.users > 0 {
		return
	}
	time.AfterFunc(watchIdle, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if r.users > 0 {
			return
		}
		r.stop()
		if v.watches[r.bucket] == r {
			v.watches[r.bucket] = nil
		}
	})
}

// newWatch begins a watch.
func (n *Node) newWatch(bucket int) *bucketWatch {
	ctx, stop := context.WithCancel(context.Background())
	r := &bucketWatch{bucket: bucket, stop: stop, total: &n.events.watched, streams: map[string][]readEvent{}, changed: map[string]chan struct{}{}, marks: map[string]chan struct{}{}}
	go func() {
		select {
		case <-n.stopped: // by Leave
			stop()
		case <-ctx.Done():
		}
	}()
	go func() {
		defer stop()
		for c, err := range n.events.state.Watch(ctx, bucketKey(bucket)) {
			if err != nil {
				r.end(err)
				return
			}
			r.take(c)
		}
		r.end(errors.New("the watch of the State has ended"))
	}()
	return r
}

// take adds what an entry of the State has.
func (r *bucketWatch) take(c Change) {
	var record eventRecord
	entry := readEntry{bytes: len(c.Value), at: time.Now()}
	if c.Key != "" && !c.Deleted {
		if entry.err = json.Unmarshal(c.Value, &record); record.Format > eventFormat {
			entry.err = fmt.Errorf("it has format %d, this node knows %d: update this node", record.Format, eventFormat)
		}
		if entry.err != nil {
			record.Events, entry.value, entry.err = nil, c.Value, fmt.Errorf("%s: %w", c.Key, entry.err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Key == "" {
		r.whole = true
		r.wake()
		return
	}
	if c.Deleted {
		return
	}
	if came := r.marks[c.Key]; came != nil {
		close(came)
		delete(r.marks, c.Key)
	}
	for _, e := range record.Events {
		r.last++
		r.streams[e.Stream] = append(r.streams[e.Stream], readEvent{e, r.last})
		entry.streams = append(entry.streams, e.Stream)
		if changed := r.changed[e.Stream]; changed != nil && r.whole {
			close(changed)
			delete(r.changed, e.Stream)
		}
	}
	r.order = append(r.order, entry)
	r.total.Add(int64(entry.bytes))
	if entry.err != nil {
		r.unread++
	}
	for len(r.order) > 0 && (r.total.Load() > watchBytes || entry.at.Sub(r.order[0].at) > eventmemory.MaxAge) {
		r.drop()
	}
}

// drop forgets the oldest entry; mu is held.
func (r *bucketWatch) drop() {
	first := r.order[0]
	r.order = r.order[1:]
	r.total.Add(-int64(first.bytes))
	for _, stream := range first.streams {
		if r.streams[stream] = r.streams[stream][1:]; len(r.streams[stream]) == 0 {
			delete(r.streams, stream)
		}
	}
	if first.err != nil {
		r.unread--
	}
}

// end ends the watch.
func (r *bucketWatch) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	for len(r.order) > 0 {
		r.drop()
	}
	r.wake()
}

// wake wakes all who use the watch; mu is held.
func (r *bucketWatch) wake() {
	for _, c := range r.changed {
		close(c)
	}
	clear(r.changed)
}

func (r *bucketWatch) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// fresh waits until a watch that had begun before has read all that is there now: it sees an entry come that is written now. The error is
// that of the State, or of ctx.
func (n *Node) fresh(ctx context.Context, r *bucketWatch) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	key, came := fmt.Sprint(bucketKey(r.bucket), ".", n.process, ".", rand.Text()), make(chan struct{})
	r.mu.Lock()
	r.marks[key] = came
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.marks, key)
	}()
	if _, err := n.events.state.Put(ctx, key, mark, 0, markTime); err != nil {
		return err
	}
	for {
		s := r.of("", 0)
		if s.err != nil {
			return s.err
		}
		select {
		case <-came:
			return nil
		case <-s.changed: // it has ended, or is whole
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// mark is the value of an entry without events.
var mark = fmt.Appendf(nil, `{"v":%d}`, eventFormat)

// markTime is how long such an entry is kept.
const markTime = time.Minute

// readState is what a watch has for a stream.
type readState struct {
	events  []readEvent // if whole
	whole   bool
	err     error           // of the watch, or of an entry that may be of the stream
	changed <-chan struct{} // closed when there is more
}

// of returns what there is for a stream behind the event of a number.
func (r *bucketWatch) of(stream string, number int) readState {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.changed[stream]
	if c == nil {
		c = make(chan struct{})
		r.changed[stream] = c
	}
	now := readState{whole: r.whole, err: r.err, changed: c}
	if r.err != nil || stream == "" && r.whole {
		close(c)
		delete(r.changed, stream)
	}
	if stream == "" || !r.whole {
		return now
	}
	for i := 0; i < len(r.order) && r.unread > 0; i++ {
		if e := r.order[i]; e.err != nil && bytes.Contains(e.value, []byte(stream)) {
			now.err = e.err
		}
	}
	list := r.streams[stream]
	from, _ := slices.BinarySearchFunc(list, number+1, func(e readEvent, n int) int { return cmp.Compare(e.number, n) })
	now.events = slices.Clone(list[from:])
	return now
}
