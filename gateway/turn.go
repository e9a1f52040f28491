package gateway

import "time"

// Some servers before 2026-07-28 ask questions that do not say which call they belong to. Calls of
// different callers who share a connection to such a server take turns (see [mcp.Session.Handle]).
// The first question on a connection reveals it; the gateway remembers the name of the server for
// its own lifetime.

// turner is an Upstream that lets callers take turns, such as a [*mcp.Session].
type turner interface {
	Asks() bool
	TakeTurns()
	Turns() (waiting int, asked time.Time, principal string)
}

// turnsInto sets whether callers take turns, how many calls wait for theirs, and the oldest open
// question; mu is held.
func (p *pool) turnsInto(s *Status) {
	add := func(c *conn) {
		if c == nil || c.turns == nil {
			return
		}
		p.learn(c)
		waiting, asked, principal := c.turns.Turns()
		if s.Waiting += waiting; !asked.IsZero() && (s.Question.IsZero() || asked.Before(s.Question)) {
			s.Question, s.Asked = asked, principal
		}
	}
	add(p.main)
	for _, c := range p.clients {
		add(c)
	}
	s.Asks = p.asks
}

// takeTurns lets callers take turns at a new connection to a server that is known to ask.
func (p *pool) takeTurns(c *conn) {
	if c.turns == nil {
		return
	}
	if _, asks := p.g.asking.Load(p.src.Name); asks {
		c.turns.TakeTurns()
	}
}

// learn records that the server has asked over c, and lets callers take turns at its other
// connections too; mu is held.
func (p *pool) learn(c *conn) {
	if p.asks || c.turns == nil || !c.turns.Asks() {
		return
	}
	p.asks = true
	p.g.asking.Store(p.src.Name, true)
	if p.main != nil && p.main.turns != nil {
		p.main.turns.TakeTurns()
	}
	for _, c := range p.clients {
		if c.turns != nil {
			c.turns.TakeTurns()
		}
	}
}
