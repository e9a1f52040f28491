package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// Servers that the nodes serve at the same path tell each other changes (store.Shared), over a topic for the path:
//
//   - A node publishes what waits, and then nothing for changeTime, so that a server which tells a change with each call does not fill
//     the Bus. A change that waits already is not added again.
//   - Nothing is sent again, and nobody answers.
//   - A node does not hear what it has told itself: a message has the process that sent it.

// changes are those that the servers of this node tell others and hear from them.
type changes struct {
	mu      sync.Mutex
	open    bool                // since Join, until Leave; guarded by mu
	process string              // of the node, since Join; guarded by mu
	paths   map[string]*changed // guarded by mu
	bytes   int                 // of what waits; guarded by mu
	wake    chan struct{}       // gets a value when something waits; capacity 1; guarded by mu
	lost    time.Time           // when it was last logged that a change was lost; guarded by mu
	strange bool                // it was logged that a message was not understood; guarded by mu
}

// changed are the changes of the servers at one path.
type changed struct {
	hear    []func(change []byte) // guarded by mu of changes
	waiting [][]byte              // not published yet, oldest first; guarded by mu of changes
	waits   map[string]bool       // the same; guarded by mu of changes
}

const (
	// changeTime is the least time between two rounds of messages. It is as short as the time in which a server makes one
	// notification of several changes.
	changeTime = 10 * time.Millisecond
	// changeWait bounds how long a round waits for the Bus.
	changeWait = time.Second
	// maxChangeBytes bounds one change.
	maxChangeBytes = 64 << 10
	// maxMessageBytes bounds the changes of one message, which is a third longer and less than MaxValue.
	maxMessageBytes = 256 << 10
	// maxWaitingChanges bounds what waits for a slow Bus, in bytes.
	maxWaitingChanges = 4 << 20
	// lostTime is the least time between two log lines about changes that were lost.
	lostTime = time.Minute
	// changeExtra is what a change counts besides its bytes.
	changeExtra = 16
)

// changesFormat is the version of changesRecord.
const changesFormat = 1

// changesRecord is a message with changes.
type changesRecord struct {
	Format  int      `json:"v"`
	Process string   `json:"process"`
	Changes [][]byte `json:"changes"`
}

// changesTopic is for the changes of servers at a path.
func changesTopic(path string) string { return "node.changes." + digest(path, "") }

// hear subscribes to what other nodes publish: that they retire, and changes of the paths that Share was called with.
func (n *Node) hear() (deaf func(), err error) {
	stop, err := n.Bus.Subscribe(retiredTopic, func(name []byte) {
		n.others.retired(string(name))
		n.lines.close(time.Now())
	})
	if err != nil {
		return nil, err
	}
	stops := []func(){stop}
	deaf = func() {
		for _, stop := range stops {
			stop()
		}
	}
	for heard := map[string]bool{}; ; {
		path, more := n.changes.begin(n.process, heard)
		if !more {
			return deaf, nil
		}
		if stop, err = n.subscribe(path); err != nil {
			deaf()
			return nil, err
		}
		heard[path] = true
		stops = append(stops, stop)
	}
}

// begin returns a path that is not heard yet. If there is none, the node has joined with that process, and hears others by itself.
func (c *changes) begin(process string, heard map[string]bool) (path string, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path := range c.paths {
		if !heard[path] {
			return path, true
		}
	}
	c.open, c.process, c.wake = true, process, make(chan struct{}, 1)
	return "", false
}

func (n *Node) subscribe(path string) (stop func(), err error) {
	return n.Bus.Subscribe(changesTopic(path), func(message []byte) { n.heard(path, message) })
}

func (c *changes) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = false
}

// hearAt lets the node hear changes of a path: from Join, or, if that was called, soon.
func (n *Node) hearAt(path string) {
	c := &n.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paths[path] != nil {
		return
	}
	if c.paths == nil {
		c.paths = map[string]*changed{}
	}
	c.paths[path] = &changed{waits: map[string]bool{}}
	if c.open { // then tellOthers runs, so that Leave waits
		n.ended.Go(func() { n.hearLate(path) })
	}
}

// hearLate subscribes to changes of a path, until stopped is closed. While the Bus refuses, it tries again.
func (n *Node) hearLate(path string) {
	for warned := false; ; warned = true {
		stop, err := n.subscribe(path)
		if err == nil {
			<-n.stopped
			stop()
			return
		}
		if !warned {
			n.Logger.Warn("changes that other nodes tell are not heard", "node", n.Name, "path", path, "err", err)
		}
		select {
		case <-n.stopped:
			return
		case <-time.After(time.Second):
		}
	}
}

// onTold calls hear with changes that other nodes tell at a path.
func (n *Node) onTold(path string, hear func(change []byte)) {
	c := &n.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths[path].hear = append(c.paths[path].hear, hear)
}

// heard handles a message of a topic.
func (n *Node) heard(path string, message []byte) {
	c := &n.changes
	var r changesRecord
	err := json.Unmarshal(message, &r)
	if r.Format > changesFormat {
		err = errors.New("a newer version sent them: update this node")
	}
	c.mu.Lock()
	log := err != nil && !c.strange
	c.strange = c.strange || log
	var hear []func(change []byte)
	if err == nil && c.open && r.Process != c.process {
		hear = c.paths[path].hear // it only grows
	}
	c.mu.Unlock()
	if log {
		n.Logger.Warn("changes of another node are not understood", "node", n.Name, "path", path, "err", err)
	}
	for _, change := range r.Changes {
		for _, f := range hear {
			f(change)
		}
	}
}

// tell lets the other nodes have a change soon.
func (n *Node) tell(path string, change []byte) {
	if n.changes.add(path, change) {
		n.Logger.Warn("a change is not told to the other nodes: it is too large, or too many wait", "node", n.Name, "path", path, "bytes", len(change))
	}
}

// add puts a change to those that wait. It returns true if that was lost, and it is time to log that.
func (c *changes) add(path string, change []byte) (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, size := c.paths[path], len(change)+changeExtra
	switch {
	case !c.open || p.waits[string(change)]:
		return false
	case len(change) > maxChangeBytes || c.bytes+size > maxWaitingChanges:
		if lost = time.Since(c.lost) > lostTime; lost {
			c.lost = time.Now()
		}
		return lost
	}
	c.bytes += size
	p.waits[string(change)] = true
	p.waiting = append(p.waiting, change)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return false
}

// tellOthers publishes changes until stopped is closed.
func (n *Node) tellOthers() {
	c, failing := &n.changes, false
	publish := func() {
		err := n.publish()
		if err != nil && !failing {
			n.Logger.Warn("changes are not told to the other nodes", "node", n.Name, "err", err)
		}
		failing = err != nil
	}
	for {
		select {
		case <-c.wake:
			publish()
		case <-n.stopped:
			c.close()
			publish() // what was told right before
			return
		}
		select {
		case <-time.After(changeTime):
		case <-n.stopped:
		}
	}
}

// publish publishes the changes that wait. With an error, some are lost.
func (n *Node) publish() error {
	ctx, stop := context.WithTimeoutCause(context.Background(), changeWait, errAway)
	defer stop()
	c := &n.changes
	c.mu.Lock()
	waiting := map[string][][]byte{}
	for path, p := range c.paths {
		if len(p.waiting) > 0 {
			waiting[path] = p.waiting
			p.waiting, p.waits = nil, map[string]bool{}
		}
	}
	c.bytes = 0
	process := c.process
	c.mu.Unlock()
	var errs []error
	for path, list := range waiting {
		for len(list) > 0 {
			count, size := 0, 0
			for count < len(list) && size+len(list[count])+changeExtra <= maxMessageBytes {
				size += len(list[count]) + changeExtra
				count++
			}
			message, err := json.Marshal(changesRecord{changesFormat, process, list[:count]})
			if err == nil {
				err = n.Bus.Publish(ctx, changesTopic(path), message)
			}
			if err != nil {
				errs = append(errs, err)
				break
			}
			list = list[count:]
		}
	}
	return errors.Join(errs...)
}
