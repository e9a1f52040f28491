package engine

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/revision"
)

// Bounds of the clients that peers keeps.
const (
	maxPeers     = 256
	maxPeerBytes = 4 << 10 // of one client; larger ones are not shared
)

// peers shares one Peer among sessions whose clients are alike, because there may be many sessions
// of few kinds of clients. The zero value is ready for use.
type sharedPeers struct {
	mu    sync.Mutex
	known map[string]*Peer // by all their fields; guarded by mu
}

// of returns the Peer for a client that opens a session. The raw values are not kept.
func (ps *sharedPeers) of(t *revision.Table, who Caller, info, capabilities json.RawMessage) *Peer {
	fresh := func() *Peer {
		return &Peer{Revision: t, Info: bytes.Clone(info), Capabilities: bytes.Clone(capabilities), Principal: who.Principal, Alone: who.Alone}
	}
	if len(info)+len(capabilities)+len(who.Principal) > maxPeerBytes {
		return fresh()
	}
	// There is no zero byte in JSON.
	key := append([]byte(t.Name), 0)
	if who.Alone {
		key = append(key, 1)
	}
	key = append(append(append(key, 0), info...), 0)
	key = append(append(append(key, capabilities...), 0), who.Principal...)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.known[string(key)]
	if p == nil {
		if len(ps.known) >= maxPeers {
			clear(ps.known) // sessions keep their own references
		}
		if ps.known == nil {
			ps.known = map[string]*Peer{}
		}
		p = fresh()
		ps.known[string(key)] = p
	}
	return p
}
