package audit

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Others gives the signed checkpoints of a log to other nodes, and notes theirs in it, in lines of kind [CheckpointOther]. When the
// logs of all nodes are verified together, a log that was cut or replaced is found, even if somebody has its key: see
// [VerifyTogether].
//
// A checkpoint is published when it is new, at most once in the Interval of the log, and again each minute, for nodes that have
// missed it. Checkpoints of lines of kind CheckpointOther alone are not published, so that nodes without calls write nothing. A log
// without a key has no checkpoints, and only notes those of others.
//
// Of each other node at most one checkpoint is noted in an Interval, and none that was noted already since the start. The signature
// is checked with the public key that comes with it: the key that the line names has signed. If several keys sign under
// the name of a node, the first one goes first for as long as it signs, and up to 10 of its messages in a second are looked at. Of all others,
// messages beyond 100 in a second are ignored, and so are nodes beyond 100. The Logger of the log gets a warning about ignored messages, once a minute, and an error if the
// log of another node goes back, because it was cut or replaced.
//
// The fields are set before Run and Receive are called. Receive may be called by several goroutines at once, Run by one.
type Others struct {
	// Log is the log of this node. Its Options have the name of the node, which no other node has.
	Log *Log

	// Publish sends a message of at most 2 KiB to Receive of the other nodes. It may lose some.
	Publish func(ctx context.Context, message []byte) error

	// Known reports whether there is a node of that name; nil: any name is one. It is asked before the first line about a node.
	Known func(ctx context.Context, node string) (bool, error)

	// used by Run alone
	sent      *noted    // the last checkpoint that was published
	published time.Time // when
	failing   bool      // the last Publish has failed

	mu      sync.Mutex
	nodes   map[string]*other // by name; guarded by mu
	window  time.Time         // a second in which checked signatures are counted; guarded by mu
	looks   int               // messages in it, of nodes and keys that have not signed before; guarded by mu
	warned  time.Time         // of ignored messages; guarded by mu
	ignored int               // since then; guarded by mu
}

const (
	idleTime    = time.Minute     // between two messages with the same checkpoint
	silentTime  = 5 * time.Minute // after which another key may sign for a node, or another node has its place
	publishTime = 3 * time.Second // bounds Publish and Known
	maxMessage  = 2 << 10
	maxLooks    = 100 // signatures to check in a second
	maxOwn      = 10  // further ones of each node with its key
	maxOthers   = 100 // nodes

	messageFormat = 1
)

// noted is a checkpoint of a node as other nodes note it: the Detail of a line of kind [CheckpointOther].
type noted struct {
	Hash      string    `json:"hash"`
	Key       string    `json:"key"`
	Log       string    `json:"log,omitempty"` // id of the log; empty: it was begun without one
	Node      string    `json:"node"`
	Seq       int64     `json:"seq"`
	Signature []byte    `json:"signature"`
	Time      time.Time `json:"time"` // of the checkpoint, by the clock of its node
}

// same reports whether two checkpoints are of the same line of a log.
func (n *noted) same(b *noted) bool {
	return b != nil && n.Seq == b.Seq && n.Hash == b.Hash && n.Log == b.Log && n.Key == b.Key
}

// message is what nodes send each other.
type message struct {
	Format int    `json:"format"`
	Public []byte `json:"public"`
	noted
}

// other is what this node knows of another one.
type other struct {
	key     string    // that signs for it
	seen    time.Time // when that key has signed
	next    *noted    // the last checkpoint with that key; nil: none since the last note
	foreign *noted    // the last one with another key; nil: none since the last note
	last    [2]*noted // that were noted, with that key and with another one
	written time.Time // when the last one was noted
	known   bool      // used by Run alone
	looks   int       // messages with that key in the second of window
}

// Receive takes a message that another node has published. It does not wait for the disk.
func (o *Others) Receive(data []byte) {
	now := time.Now()
	if err := o.receive(now, data); err != nil {
		o.ignore(now, err)
	}
}

// ignore counts a message that is ignored, and says so once a minute.
func (o *Others) ignore(now time.Time, err error) {
	o.mu.Lock()
	o.ignored++
	count, due := o.ignored, now.Sub(o.warned) >= idleTime
	if due {
		o.warned, o.ignored = now, 0
	}
	o.mu.Unlock()
	if due {
		o.Log.options.Logger.Warn("messages about audit logs of other nodes are ignored", "count", count, "err", err)
	}
}

// receive takes a message. The error says why it is ignored.
func (o *Others) receive(now time.Time, data []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.window) >= time.Second {
		o.window, o.looks = now, 0
		for _, one := range o.nodes {
			one.looks = 0
		}
	}
	return o.take(now, data)
}

// take keeps a checkpoint of another node until it is noted. The caller has mu.
func (o *Others) take(now time.Time, data []byte) error {
	if len(data) > maxMessage {
		return fmt.Errorf("a message has %d bytes; the maximum is 2 KiB", len(data))
	}
	var m message
	if err := jsonx.Unmarshal(data, &m); err != nil {
		return err
	}
	switch {
	case m.Node == o.Log.options.Node: // it is this node's own
		return nil
	case m.Format != messageFormat:
		return fmt.Errorf("a message of node %.40q has format %d; this program knows %d", m.Node, m.Format, messageFormat)
	case !isName(m.Node) || m.Log != "" && !isName(m.Log):
		return fmt.Errorf("a message has names that cannot be: node %.40q, log %.40q", m.Node, m.Log)
	case m.Seq <= 0 || !isHash(m.Hash) || m.Time.Year() < 0 || m.Time.Year() > 9999 || len(m.Public) != ed25519.PublicKeySize:
		return fmt.Errorf("a message of node %q is not a checkpoint", m.Node)
	}
	one := o.nodes[m.Node]
	if one != nil && m.Key == one.key && (m.same(one.next) || one.next == nil && m.same(one.last[0])) {
		one.seen = now
		return nil
	}
	looks, most := &o.looks, maxLooks
	if one != nil && m.Key == one.key {
		looks, most = &one.looks, maxOwn
	}
	if *looks++; *looks > most {
		return errors.New("too many messages in a second")
	}
	signed := &Signed{Hash: m.Hash, Key: m.Key, Seq: m.Seq, Signature: m.Signature}
	if err := signed.check(m.Node, m.Public); err != nil {
		return fmt.Errorf("a checkpoint of node %q: %w", m.Node, err)
	}
	if one == nil {
		if !o.room(now) {
			return fmt.Errorf("node %q is one too many: at most %d are noted", m.Node, maxOthers)
		}
		one = &other{key: m.Key, seen: now}
		o.nodes[m.Node] = one
	}
	if m.Key != one.key && now.Sub(one.seen) >= silentTime {
		one.key, one.next, one.foreign, one.last = m.Key, nil, nil, [2]*noted{one.last[1], one.last[0]}
	}
	m.Time = m.Time.UTC().Truncate(time.Microsecond)
	if m.Key == one.key {
		one.seen, one.next = now, &m.noted
	} else {
		one.foreign = &m.noted
	}
	return nil
}

// room makes room for a further node. The caller has mu.
func (o *Others) room(now time.Time) bool {
	if o.nodes == nil {
		o.nodes = map[string]*other{}
	}
	if len(o.nodes) < maxOthers {
		return true
	}
	for name, one := range o.nodes {
		if now.Sub(one.seen) >= silentTime {
			delete(o.nodes, name)
			return true
		}
	}
	return false
}

// isName reports whether a name is one of a node or of a log, as lines have it.
func isName(s string) bool {
	return s != "" && clipped(s, maxChosen) == s && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || text.Obeyed(r) })
}

// isHash reports whether a text is the hash of a line.
func isHash(s string) bool {
	_, ok := sum(s)
	return ok
}

// Run publishes and notes checkpoints until ctx ends. Close the log afterwards.
func (o *Others) Run(ctx context.Context) {
	tick := time.NewTicker(min(o.Log.options.Interval, time.Second))
	defer tick.Stop()
	for {
		o.publish(ctx, false)
		o.write(ctx)
		select {
		case <-ctx.Done():
			o.publish(context.WithoutCancel(ctx), true)
			return
		case <-tick.C:
		}
	}
}

// publish publishes the last checkpoint if it is new or was published a while ago. The last message is only for a new one.
func (o *Others) publish(ctx context.Context, last bool) {
	c, since := o.Log.latest.Load(), time.Since(o.published)
	switch {
	case c == nil || c == o.sent && (last || since < idleTime):
		return
	case c != o.sent && since < o.Log.options.Interval && !last:
		return
	}
	data, err := jsonx.Marshal(&message{messageFormat, publicKey(o.Log.options.Key), *c})
	if err == nil {
		ctx, stop := context.WithTimeout(ctx, publishTime)
		defer stop()
		err = o.Publish(ctx, data)
	}
	if err != nil && !o.failing {
		o.Log.options.Logger.Warn("checkpoints of the audit log do not reach other nodes", "err", err)
	}
	if o.failing = err != nil; !o.failing {
		o.sent, o.published = c, time.Now()
	}
}

// write notes the checkpoints that are due.
func (o *Others) write(ctx context.Context) {
	for name, one := range o.due() {
		if o.Known != nil && !one.known {
			bounded, stop := context.WithTimeout(ctx, publishTime)
			known, err := o.Known(bounded, name)
			stop()
			if err != nil {
				return // again at the next tick
			}
			if one.known = known; !known {
				o.unknown(name)
				continue
			}
		}
		o.note(one)
	}
}

// unknown forgets what a node said that is not in the cluster.
func (o *Others) unknown(name string) {
	o.mu.Lock()
	delete(o.nodes, name)
	o.mu.Unlock()
	o.ignore(time.Now(), fmt.Errorf("node %q is not in the cluster", name))
}

// due returns the nodes of which a checkpoint may be noted now.
func (o *Others) due() map[string]*other {
	o.mu.Lock()
	defer o.mu.Unlock()
	due := map[string]*other{}
	for name, one := range o.nodes {
		if (one.next != nil || one.foreign != nil) && time.Since(one.written) >= o.Log.options.Interval {
			due[name] = one
		}
	}
	return due
}

// note writes a line about a node, if there is something new. A checkpoint that could not be noted comes again.
func (o *Others) note(one *other) {
	c, before, of := o.pick(one)
	if c == nil {
		return
	}
	raw, err := jsonx.Marshal(c)
	if err == nil {
		var l line
		if l, err = o.Log.prepare(&Entry{Kind: CheckpointOther, Detail: raw}); err == nil {
			l.other = true
			_, err = o.Log.enqueue(queued{line: l})
		}
	}
	if err != nil {
		o.Log.options.Logger.Warn("the checkpoint of another node is not noted", "node", c.Node, "err", err)
		return
	}
	o.mu.Lock()
	one.last[of], one.written = c, time.Now()
	o.mu.Unlock()
	o.compare(c, before)
}

// pick returns the checkpoint of a node that is to be noted, nil: none is; the one before it, nil: it is the first; and where among
// the last ones it belongs.
func (o *Others) pick(one *other) (c, before *noted, of int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c = one.next
	if c == nil || c.same(one.last[0]) {
		c, of = one.foreign, 1
		one.foreign = nil
	}
	one.next = nil
	if c == nil || c.same(one.last[of]) {
		return nil, nil, 0
	}
	return c, cmp.Or(one.last[of], one.last[0]), of
}

// compare logs what a person should know about the checkpoint of a node after the one before; nil: there is none.
func (o *Others) compare(c, before *noted) {
	if before == nil {
		return
	}
	log := o.Log.options.Logger.With("node", c.Node)
	switch {
	case c.Key != before.Key:
		log.Warn("another key signs the audit log of another node", "key", c.Key, "before", before.Key)
	case c.Log != before.Log:
		log.Warn("another node has begun another audit log", "log", c.Log, "before", before.Log)
	case c.Seq < before.Seq || c.Seq == before.Seq && c.Hash != before.Hash:
		log.Error("audit log of another node went back: it was cut or replaced", "line", c.Seq, "before", before.Seq, "next", "patchbay audit verify with the logs of all nodes says more")
	}
}
