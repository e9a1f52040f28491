package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// limits say how much callers may ask for.
type limits struct {
	Limit []string `name:"limit" sep:"none" placeholder:"SPEC" help:"At most 100/s (repeatable): patchbay help limits."`
}

// helpLimits tells what --limit takes.
const helpLimits = `How much callers may ask for, by --limit of serve, up, bridge, run and chat;
without one there is no bound

  100/s                        requests of each caller; also 5/m, 1000/h, 10/30s
  100/s,burst=200              so many at once after a pause; else the number
  tool:NAME=5/m                calls of a tool, of each caller; NAME* means all
                               tools that begin so, together
  concurrent=20                requests of each caller that are at work
  address=50/s                 HTTP requests of an address, let in or not
  proxy=10.0.0.0/8             whose X-Forwarded-For says what the address is

A caller is who was let in by --auth, else an address, and over stdio whoever is
there. What is too much is answered with an error that says when to come back
(data.retryAfter, seconds), over HTTP with 429 and Retry-After. Pings and
cancellations do not count; answers to questions and requests about tasks have
room of their own.
`

// limit bounds the requests of a server; nil: there is no bound. Over stdio there are no
// addresses.
func (c *limits) limit(srv *mcp.Server, overHTTP bool) (*limit.Limiter, error) {
	l, err := c.limiter(overHTTP)
	if l != nil {
		srv.Use(l.Limit)
	}
	return l, err
}

// limiter makes the bounds; nil: there are none.
func (c *limits) limiter(overHTTP bool) (*limit.Limiter, error) {
	if len(c.Limit) == 0 {
		return nil, nil
	}
	l := new(limit.Limiter)
	for _, text := range c.Limit {
		if err := addLimit(l, text); err != nil {
			return nil, usagef("--limit %s: %v", text, err).hint("patchbay help limits")
		}
	}
	var none limit.Rate
	switch {
	case !overHTTP && (l.Address != none || len(l.Proxies) > 0):
		return nil, usagef("--limit address= and proxy= are for HTTP; stdio has no addresses").hint("patchbay help limits")
	case l.Caller == none && l.Tools == nil && l.Address == none && l.Concurrent == 0:
		return nil, usagef("--limit proxy= says where requests come from, and nothing bounds them").hint("patchbay help limits")
	}
	return l, nil
}

// addLimit reads one SPEC.
func addLimit(l *limit.Limiter, text string) error {
	kind, value, named := strings.Cut(text, "=")
	tool, ofTool := strings.CutPrefix(kind, "tool:")
	if !named || !ofTool && strings.Contains(kind, "/") { // 10/s,burst=5
		kind, value = "", text
	}
	switch {
	case kind == "proxy":
		p, err := prefixOf(value)
		if err != nil {
			return fmt.Errorf("%.100q is neither an address nor a network", value)
		}
		l.Proxies = append(l.Proxies, p)
		return nil
	case kind == "concurrent":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return fmt.Errorf("%.100q is no number of requests", value)
		}
		if l.Concurrent != 0 {
			return errTwice
		}
		l.Concurrent = n
		return nil
	case kind != "" && kind != "address" && (!ofTool || tool == ""):
		return fmt.Errorf("there is no %.100q", kind)
	}
	r, err := limit.ParseRate(value)
	if err != nil {
		return err
	}
	if ofTool {
		if _, twice := l.Tools[tool]; twice {
			return errTwice
		}
		if l.Tools == nil {
			l.Tools = map[string]limit.Rate{}
		}
		l.Tools[tool] = r
		return nil
	}
	at := &l.Caller
	if kind == "address" {
		at = &l.Address
	}
	if *at != (limit.Rate{}) {
		return errTwice
	}
	*at = r
	return nil
}

var errTwice = errors.New("there are two of these")

// prefixOf reads a network, or an address, which is a network of one.
func prefixOf(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}
