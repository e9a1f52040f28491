package listen

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/limit"
)

// HelpLimits describes the values of --limit.
const HelpLimits = `Rate limits for callers, with --limit of serve, up, bridge, mock, run and chat.
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

// AddLimit adds a SPEC of --limit to a limiter:
//
//	RATE  tool:NAME=RATE  concurrent=N  address=RATE  proxy=NETWORK
//
// See "patchbay help limits". A limit that is given twice is an error.
func AddLimit(l *limit.Limiter, text string) error {
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
			return fmt.Errorf("%.100q is not a number of requests", value)
		}
		if l.Concurrent != 0 {
			return errTwice
		}
		l.Concurrent = n
		return nil
	case kind != "" && kind != "address" && (!ofTool || tool == ""):
		return fmt.Errorf("unknown limit %.100q", kind)
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

var errTwice = errors.New("this limit is given twice")

// prefixOf parses a network, or an address as a network of one.
func prefixOf(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}
