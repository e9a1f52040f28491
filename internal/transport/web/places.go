package web

import (
	"fmt"
	"sync"
)

// Places bounds how many of something are open at once, and how many of them one principal may
// have: a quarter of all, at least one, so that no one locks out the others. Callers whom nobody
// has authenticated cannot be told apart and are bounded by the whole alone. The zero value is
// ready for use, by several goroutines.
type Places struct {
	mu  sync.Mutex
	all int            // taken; guarded by mu
	of  map[string]int // by principals that are known; guarded by mu
}

// Take takes a place of most, zero for no bound. What names what the places are for, in the
// error that says why there is none. Each Take without error is followed by a Leave.
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

// Leave gives a place back.
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
