package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/store"
)

// Share returns what this node has together with the others, for an mcp.Server that it serves at a path (mcp.Server.Shared):
// [Node.Sessions], [Node.Events], [Node.Tasks], keys of requestState that are replaced each day, so that each node continues a
// call that has asked a question at another one, and changes that the servers at that path tell each other, from Join to Leave. A node
// misses some of those while it is slow or cut off, and for a moment after Join, or after Share if that comes later. A change of more than
// 64 KiB is not told, nor is one that finds 4 MiB of others waiting for a slow Bus.
func (n *Node) Share(path string) store.Shared {
	n.hearAt(path)
	return shared{n, path}
}

// shared is a [store.Shared].
type shared struct {
	node *Node
	path string
}

func (s shared) Sessions() store.Sessions { return s.node.Sessions(s.path) }
func (s shared) Events() store.Events     { return s.node.Events() }
func (s shared) Tasks() store.Tasks       { return s.node.Tasks(s.path) }
func (s shared) StateKeys() [][]byte      { return s.node.keys.now() }
func (s shared) Tell(change []byte)       { s.node.tell(s.path, change) }

func (s shared) OnTold(hear func(change []byte)) { s.node.onTold(s.path, hear) }

// keysKey is the key of the ring in the State.
const keysKey = "cluster.keys"

const (
	keyTime   = 24 * time.Hour   // how long a key seals
	keyLook   = 5 * time.Second  // how often a node looks at the ring
	keySpread = time.Minute      // until all nodes have a new key, which only opens before
	keyLeast  = time.Hour        // a node has a key for that long before it makes the next one, whatever the clocks of the nodes are
	keyOld    = 5 * time.Minute  // a key of that age is with all nodes, also if the clocks differ by a few minutes
	keyWait   = 10 * time.Second // bounds the wait for the State
)

// ringFormat is the version of ring. A node does not change what a newer version has written.
const ringFormat = 1

// ring is the value of keysKey.
type ring struct {
	Format int       `json:"v"`
	Since  time.Time `json:"since"` // when the first key was made
	Keys   [][]byte  `json:"keys"`  // the newest first, and the one before it
}

// keys are those of requestState, as a node has them.
type keys struct {
	mu     sync.Mutex
	ring   ring      // Keys is replaced, not changed; guarded by mu
	since  time.Time // when this node first had the newest one; guarded by mu
	spread bool      // whether the others have it; guarded by mu
}

// now returns the keys in the order in which a Sealer takes them.
func (k *keys) now() [][]byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.ring.Keys
	if k.spread = k.spread || time.Since(k.since) >= keySpread; !k.spread && len(list) > 1 {
		return [][]byte{list[1], list[0]}
	}
	return list
}

// take notes a ring of the State.
func (k *keys) take(r ring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ring.Keys) == 0 || !bytes.Equal(k.ring.Keys[0], r.Keys[0]) {
		first := len(k.ring.Keys) == 0
		k.since, k.spread = time.Now(), first && time.Since(r.Since) > keyOld
	}
	k.ring = r
}

// next returns what the ring of the State becomes; false: it stays. It has no keys if the State has none.
func (k *keys) next(r ring) (ring, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	own := k.ring.Keys
	switch age := time.Since(r.Since); {
	case len(r.Keys) == 0 && len(own) > 0: // the State has lost it
		return k.ring, true
	case len(r.Keys) == 1 && len(own) > 0 && !slices.ContainsFunc(own, func(key []byte) bool { return bytes.Equal(key, r.Keys[0]) }):
		r.Keys = append(r.Keys, own[0]) // likewise, and a node that did not know it has made another one
		return r, true
	case len(r.Keys) == 0, (age > keyTime || age < -keyTime) && len(own) > 0 && bytes.Equal(own[0], r.Keys[0]) && time.Since(k.since) > keyLeast:
		key := make([]byte, 32)
		rand.Read(key) // it never fails
		return ring{Format: ringFormat, Since: time.Now(), Keys: append([][]byte{key}, r.Keys[:min(len(r.Keys), 1)]...)}, true
	}
	return r, false
}

// readKeys takes the keys of the State, and replaces them when it is time.
func (n *Node) readKeys(ctx context.Context) error {
	for {
		var r ring
		e, err := n.State.Get(ctx, keysKey)
		if err == nil {
			if err = json.Unmarshal(e.Value, &r); r.Format > ringFormat {
				err = fmt.Errorf("format %d, this node knows %d: update it", r.Format, ringFormat)
			} else if err == nil && len(r.Keys) == 0 {
				err = errors.New("no key")
			}
			if err != nil {
				return fmt.Errorf("%s: %w", keysKey, err)
			}
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		next, changed := n.keys.next(r)
		if changed {
			value, err := json.Marshal(next)
			if err != nil {
				return err
			}
			switch _, err = n.State.Put(ctx, keysKey, value, e.Version, 0); {
			case errors.Is(err, ErrConflict): // another node was first
				continue
			case err != nil:
				return err
			}
		}
		n.keys.take(next)
		return nil
	}
}

// turnKeys looks at the keys until stopped is closed. While the State does not answer, they stay.
func (n *Node) turnKeys() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		<-n.stopped
		stop()
	}()
	for warned := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(keyLook):
		}
		try, stop := context.WithTimeout(ctx, keyWait)
		err := n.readKeys(try)
		stop()
		if err != nil && !warned && ctx.Err() == nil {
			n.Logger.Warn("changes of the keys of requestState are not seen", "node", n.Name, "err", err)
		}
		warned = err != nil
	}
}
