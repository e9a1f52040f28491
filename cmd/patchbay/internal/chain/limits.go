package chain

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// usage returns the error for a wrong command line.
func usage(next, format string, args ...any) *Error {
	return &Error{fmt.Errorf(format, args...), next, true}
}

const helpLimits = "patchbay help limits"

// newLimiter reads SPECs of limits; nil: there are none.
func newLimiter(specs []string, overHTTP bool) (*limit.Limiter, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	l := new(limit.Limiter)
	for _, text := range specs {
		if err := listen.AddLimit(l, text); err != nil {
			return nil, usage(helpLimits, "--limit %s: %w", text, err)
		}
	}
	var none limit.Rate
	switch {
	case !overHTTP && (l.Address != none || len(l.Proxies) > 0):
		return nil, usage(helpLimits, "--limit address= and proxy= need HTTP; stdio has no addresses")
	case l.Caller == none && l.Tools == nil && l.Address == none && l.Concurrent == 0:
		return nil, usage(helpLimits, "--limit proxy= needs another limit")
	}
	return l, nil
}

// limits is a limiter that can be replaced while requests run. Behind views it is in two: the limits of
// tools count the names that the gateway has, which a view may change, and the others are in front.
type limits struct {
	now   atomic.Pointer[limit.Limiter] // nil: no limits
	tools atomic.Pointer[limit.Limiter] // those of tools if they are apart; nil: there are none
	apart bool                          // set before the first request
	group *limit.Group                  // that has the limits together; nil: this process; set before the first request
}

// set replaces the limits; nil: there are none.
func (l *limits) set(by *limit.Limiter) {
	if by != nil {
		by.Group = l.group
	}
	if !l.apart || by == nil || by.Tools == nil {
		l.now.Store(by)
		l.tools.Store(nil)
		return
	}
	l.now.Store(&limit.Limiter{Caller: by.Caller, Concurrent: by.Concurrent, Address: by.Address, Proxies: by.Proxies, Group: by.Group})
	l.tools.Store(&limit.Limiter{Tools: by.Tools, Group: by.Group})
}

// Share makes the limits those of several nodes together. It is called before Views and Front.
func (c *Chain) Share(group *limit.Group) {
	if c.limits != nil {
		c.limits.group = group
		c.limits.set(c.limits.now.Load())
	}
}

// split takes the limits of tools apart, for limitTools.
func (l *limits) split() {
	l.apart = true
	l.set(l.now.Load())
}

// limited is a handler behind a limiter.
type limited struct {
	by *limit.Limiter
	mcp.Handler
}

// limit is the middleware.
func (l *limits) limit(next mcp.Handler) mcp.Handler { return limitBy(&l.now, next) }

// limitTools is the middleware of the limits of tools that are apart.
func (l *limits) limitTools(next mcp.Handler) mcp.Handler { return limitBy(&l.tools, next) }

func limitBy(now *atomic.Pointer[limit.Limiter], next mcp.Handler) mcp.Handler {
	var last atomic.Pointer[limited]
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		by := now.Load()
		if by == nil {
			return next.Handle(ctx, req)
		}
		h := last.Load()
		if h == nil || h.by != by {
			h = &limited{by, by.Limit(next)}
			last.Store(h)
		}
		return h.Handle(ctx, req)
	})
}

// protect is the handler in front of authentication.
func (l *limits) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := next
		if by := l.now.Load(); by != nil {
			h = by.Protect(next)
		}
		h.ServeHTTP(w, r)
	})
}
