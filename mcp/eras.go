package mcp

import (
	"errors"
	"io"
	"sync"
	"time"
)

// Eras remembers how best to open sessions with servers: which servers are legacy, and which
// commands end by themselves at any first request. Clients that share one probe fewer servers
// twice, and start fewer commands twice. An entry expires after an hour, because another version of
// the server may have taken its place.
//
// The zero value is ready for use. Several Clients may use one at once.
type Eras struct {
	mu      sync.Mutex
	servers map[string]eraNote // by address or command; guarded by mu
}

// eraNote is what is known of a server. The zero value: nothing is known.
type eraNote struct {
	at             time.Time
	modern, legacy bool // eras it has spoken; never both
	ends           int  // consecutive openings in which the server ended by itself without having spoken
}

const (
	eraTime = time.Hour // after which a server may be another

	// One in initializeEvery openings of a server that always ends begins with initialize, in case
	// the server now ends only at server/discover. The other openings begin with server/discover,
	// so that a server of both eras gets the newer one.
	initializeEvery = 4
)

// note returns the entry of a server; mu is held.
func (e *Eras) note(key string) eraNote {
	n := e.servers[key]
	if time.Since(n.at) > eraTime {
		return eraNote{}
	}
	return n
}

// set stores the entry of a server; mu is held.
func (e *Eras) set(key string, n eraNote) {
	if key == "" {
		return
	}
	if e.servers == nil {
		e.servers = map[string]eraNote{}
	}
	n.at = time.Now()
	e.servers[key] = n
}

// legacy reports whether an opening begins with initialize, and why.
func (e *Eras) legacy(key string) (how string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch n := e.note(key); {
	case n.legacy:
		return "initialize, as this server was legacy before", true
	case n.ends > 0 && n.ends%initializeEvery == 0:
		return "initialize, as the server ended on server/discover", true
	}
	return "", false
}

// spoke records the era of a server (VER-26-007).
func (e *Eras) spoke(key string, legacy bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set(key, eraNote{modern: !legacy, legacy: legacy})
}

// forget drops the era of a server, so that it is probed again.
func (e *Eras) forget(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.servers, key)
}

// ended records that a server ended during an opening. It returns true if e knew neither the era of
// the server nor an earlier end of it.
func (e *Eras) ended(key string) (first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.note(key)
	if n.modern || n.legacy {
		return false
	}
	n.ends++
	e.set(key, n)
	return n.ends == 1
}

// broken records that a server ended in both of its two starts.
func (e *Eras) broken(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set(key, eraNote{ends: 1})
}

// known returns the Eras of the client.
func (c *Client) known() *Eras {
	if c.Eras != nil {
		return c.Eras
	}
	return &c.own
}

// openTwice opens a session on a pipe, and once more if the server ended when it was asked
// server/discover. Some servers end at the first message that they do not know; they are legacy. A
// server that also ends at initialize is broken: later tries start it once each.
func (c *Client) openTwice(key string, open func() (*Session, error)) (*Session, error) {
	s, err := open()
	if !errors.Is(err, io.ErrUnexpectedEOF) || !c.known().ended(key) || !errors.Is(err, errProbeFatal) {
		return s, err
	}
	c.known().spoke(key, true)
	s, err = open()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		c.known().broken(key)
	case err != nil:
		c.known().forget(key)
	}
	return s, err
}
