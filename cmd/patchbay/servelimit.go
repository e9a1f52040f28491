package main

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// limits say how much callers may ask for.
type limits struct {
	Rate       []string `name:"rate" sep:"none" placeholder:"RATE" help:"100/s of each caller; tool:NAME=5/m; address=50/s."`
	Concurrent int      `name:"concurrent" placeholder:"N" help:"Requests of one caller that may be at work."`
	Proxies    []string `name:"trust-proxy" placeholder:"CIDR" help:"Whose X-Forwarded-For is believed."`
}

// limit bounds the requests of a server; nil: there is no bound. Over stdio there are no
// addresses.
func (c *limits) limit(srv *mcp.Server, overHTTP bool) (*limit.Limiter, error) {
	if len(c.Rate) == 0 && c.Concurrent == 0 && len(c.Proxies) == 0 {
		return nil, nil
	}
	if c.Concurrent < 0 {
		return nil, usagef("--concurrent %d is no number of requests", c.Concurrent)
	}
	l := &limit.Limiter{Concurrent: c.Concurrent}
	for _, text := range c.Rate {
		if err := c.add(l, text); err != nil {
			return nil, usagef("--rate %s: %v", text, err).hint("--rate 100/s --rate tool:NAME=5/m --rate address=50/s")
		}
	}
	for _, text := range c.Proxies {
		p, err := prefixOf(text)
		if err != nil {
			return nil, usagef("--trust-proxy %s is neither an address nor a network", text).hint("--trust-proxy 10.0.0.0/8")
		}
		l.Proxies = append(l.Proxies, p)
	}
	switch {
	case !overHTTP && (l.Address != limit.Rate{} || len(l.Proxies) > 0):
		return nil, usagef("--rate address= and --trust-proxy are for HTTP; stdio has no addresses")
	case l.Caller == limit.Rate{} && l.Tools == nil && l.Address == limit.Rate{} && l.Concurrent == 0:
		return nil, usagef("--trust-proxy says where requests come from, for --rate and --concurrent, which are missing")
	}
	srv.Use(l.Limit)
	return l, nil
}

// add reads one --rate.
func (*limits) add(l *limit.Limiter, text string) error {
	of, rate := "", text
	if strings.HasPrefix(text, "tool:") || strings.HasPrefix(text, "address=") {
		of, rate, _ = strings.Cut(text, "=")
	}
	r, err := limit.ParseRate(rate)
	if err != nil {
		return err
	}
	name, ofTool := strings.CutPrefix(of, "tool:")
	twice := false
	switch {
	case ofTool && name == "":
		return fmt.Errorf("tool: wants a name")
	case ofTool:
		if l.Tools == nil {
			l.Tools = map[string]limit.Rate{}
		}
		_, twice = l.Tools[name]
		l.Tools[name] = r
	case of != "":
		twice = l.Address != limit.Rate{}
		l.Address = r
	default:
		twice = l.Caller != limit.Rate{}
		l.Caller = r
	}
	if twice {
		return fmt.Errorf("there are two rates for the same")
	}
	return nil
}

// prefixOf reads a network, or an address, which is a network of one.
func prefixOf(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}
