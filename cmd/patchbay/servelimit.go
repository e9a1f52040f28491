package main

import (
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// limits has the flag for rate limits of callers.
type limits struct {
	Limit []string `name:"limit" sep:"none" placeholder:"SPEC" help:"Rate limit (repeatable): patchbay help limits."`
}

// helpLimits describes the values of --limit.
const helpLimits = `Rate limits for callers, with --limit of serve, up, bridge, mock, run and chat.
Default: unlimited.

  100/s                        requests of each caller; also 5/m, 1000/h, 10/30s
  100/s,burst=200              a burst after a pause; default: the same number
  tool:NAME=5/m                calls of a tool, of each caller; NAME* counts all
                               tools with this prefix together
  concurrent=20                requests of each caller in progress
  address=50/s                 HTTP requests of an address, authenticated or not
  proxy=10.0.0.0/8             trust X-Forwarded-For of these proxies

A caller is the authenticated principal, without --auth an address, and over
stdio the one client. Excess requests get an error with the time to retry
(data.retryAfter, seconds), over HTTP with 429 and Retry-After. Pings and
cancellations do not count; answers to questions and requests about tasks have
limits of their own.
`

// limit applies the limits to the requests to a server; nil: there are none. Limits by address are
// refused over stdio.
func (c *limits) limit(srv *mcp.Server, overHTTP bool) (*limit.Limiter, error) {
	l, err := c.limiter(overHTTP)
	if l != nil {
		srv.Use(l.Limit)
	}
	return l, err
}

// limiter returns the limits; nil: there are none.
func (c *limits) limiter(overHTTP bool) (*limit.Limiter, error) {
	if len(c.Limit) == 0 {
		return nil, nil
	}
	l := new(limit.Limiter)
	for _, text := range c.Limit {
		if err := listen.AddLimit(l, text); err != nil {
			return nil, usagef("--limit %s: %v", text, err).hint("patchbay help limits")
		}
	}
	var none limit.Rate
	switch {
	case !overHTTP && (l.Address != none || len(l.Proxies) > 0):
		return nil, usagef("--limit address= and proxy= need HTTP; stdio has no addresses").hint("patchbay help limits")
	case l.Caller == none && l.Tools == nil && l.Address == none && l.Concurrent == 0:
		return nil, usagef("--limit proxy= needs another limit").hint("patchbay help limits")
	}
	return l, nil
}
