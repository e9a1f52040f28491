package main

import (
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/limit"
)

// limits has the flag for rate limits of callers.
type limits struct {
	Limit []string `name:"limit" sep:"none" placeholder:"SPEC" help:"Rate limit (repeatable): patchbay help limits."`
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
