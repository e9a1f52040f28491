package mcp

import (
	"errors"
	"io"
	"sync"
	"time"
)

// Eras remembers how sessions with servers are best opened: which servers are legacy, and which
// commands end by themselves whatever they are asked. Clients that share one ask fewer servers
// twice, and start fewer commands twice. What it knows of a server it forgets after an hour, as
// another version may have taken its place.
//
// The zero value is ready for use. Several Clients may use one at once.
type Eras struct {
	mu      sync.Mutex
	servers map[string]eraNote // by address or command; guarded by mu
}

// eraNote is what is known of a server. The zero value: nothing.
type eraNote struct {
	at             time.Time
	modern, legacy bool // it has spoken that; not both
	ends           int  // openings in a row in which it ended by itself, of a server that has not spoken yet
}

const (
	eraTime = time.Hour // after which a server may be another

	// Of the openings of a server that always ends, one in so many begins with initialize: it may
	// have become one that ends only when it is asked server/discover. The others leave a server
	// of both eras the newer one.
	initializeEvery = 4
)

// note returns what is known; mu is held.
func (e *Eras) note(key string) eraNote {
	n := e.servers[key]
	if time.Since(n.at) > eraTime {
		return eraNote{}
	}
	return n
}

// set keeps what is known; mu is held.
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

// legacy tells whether an opening begins with initialize, and why.
func (e *Eras) legacy(key string) (how string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch n := e.note(key); {
	case n.legacy:
		return "initialize, as this server was legacy before", true
	case n.ends > 0 && n.ends%initializeEvery == 0:
		return "initialize, as the server ended when it was asked server/discover", true
	}
	return "", false
}

// spoke keeps which era a server was found to be of (VER-26-007).
func (e *Eras) spoke(key string, legacy bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set(key, eraNote{modern: !legacy, legacy: legacy})
}

// forget has a server asked again.
func (e *Eras) forget(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.servers, key)
}

// ended notes that a server ended while a session was opened, and tells whether nothing was known
// of it before.
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

// broken notes that a server that was started twice ended both times.
func (e *Eras) broken(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set(key, eraNote{ends: 1})
}

// known is what the client knows of servers.
func (c *Client) known() *Eras {
	if c.Eras != nil {
		return c.Eras
	}
	return &c.own
}

// openTwice opens a session on a pipe, and once more if the server ended when it was asked
// server/discover, as some do at the first message that they do not know. They are legacy. A
// server that ends at initialize as well is simply broken: later tries start it once each.
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
