package web

import (
	"fmt"
	"sync"
)

// Places bounds how many sessions, streams or connections are open at once, and how many of them
// one principal may have: a quarter of all, at least one, so that one principal cannot lock out
// the others. Unauthenticated callers cannot be distinguished and are bounded only by the total.
// The zero value is ready for use. Places is safe for concurrent use.
type Places struct {
	mu  sync.Mutex
	all int            // taken; guarded by mu
	of  map[string]int // taken by each authenticated principal; guarded by mu
}

// Take takes one of most places; zero means no bound. The argument what names the kind of places in
// the error, which says why none is free. A Leave must follow each Take without error.
func (p *Places) Take(principal string, most int, what string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := max(1, most/4)
	switch {
	case most <= 0:
	case principal != "" && p.of[principal] >= own:
		return fmt.Errorf("the caller has %d %s, and one caller may have a quarter of the %d that this server allows (HTTPConfig.MaxSessions); end some, or try again later", own, what, most)
	case p.all >= most:
		return fmt.Errorf("there are %d %s, the most that this server allows (HTTPConfig.MaxSessions); try again later", most, what)
	}
	p.all++
	if principal != "" {
		if p.of == nil {
			p.of = map[string]int{}
		}
		p.of[principal]++
	}
	return nil
}

// Leave releases a place.
func (p *Places) Leave(principal string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if principal == "" {
		return
	}
	if p.of[principal]--; p.of[principal] == 0 {
		delete(p.of, principal)
	}
}
