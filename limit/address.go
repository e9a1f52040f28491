package limit

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

type addressKey struct{}

// Protect returns a handler that passes requests to next. If an address exceeds [Limiter.Address],
// the handler answers with status 429 instead. [Limiter.Limit] counts a request without a principal
// by the address that the handler found. Put Protect in front of authentication, so that requests
// which authentication refuses count too.
func (l *Limiter) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := l.origin(r)
		if late := l.admitAddress(from); late != nil {
			late.refuse(w)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), addressKey{}, from)))
	})
}

// admitAddress counts a request of an address.
func (l *Limiter) admitAddress(from netip.Addr) *Error {
	if l.Address.none() {
		return nil
	}
	now := time.Now()
	l.known.mu.Lock()
	defer l.known.mu.Unlock()
	b := l.known.of(key{address, from.String(), ""}, l.Address, l.Group, now)
	wait := b.wait(now)
	if wait == 0 {
		b.take(now)
	}
	l.Group.note(b, now, 0)
	if wait > 0 {
		return &Error{fmt.Sprintf("more requests than %s from one address", b.rate), l.Group.soon(b, now, wait)}
	}
	return nil
}

// bodyTime bounds the reading of the body of a refused request, which net/http does before it
// answers.
const bodyTime = 5 * time.Second

// refuse answers a request that was not read.
func (e *Error) refuse(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	h := w.Header()
	h.Set("Retry-After", strconv.Itoa(e.seconds()))
	h.Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write(jsonrpc.AppendErrorWithoutID(nil, e.rpc())) // the client may have disconnected
}

// HTTPHeader returns the status and the headers of the answer to a call.
func (e *Error) HTTPHeader(context.Context) (status int, h http.Header) {
	return http.StatusTooManyRequests, http.Header{"Retry-After": {strconv.Itoa(e.seconds())}}
}

// origin returns the network from which a request came: that of the connection, or the one
// reported by trusted proxies.
func (l *Limiter) origin(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	from := at.Addr().Unmap()
	said := r.Header["X-Forwarded-For"]
	for i := len(said) - 1; i >= 0; i-- { // each proxy adds to the end
		hops := strings.Split(said[i], ",")
		for j := len(hops) - 1; j >= 0; j-- {
			if !l.trusted(from) {
				return Network(from)
			}
			hop, ok := parseHop(strings.TrimSpace(hops[j]))
			if !ok {
				return Network(from) // entries before it are not trustworthy
			}
			from = hop
		}
	}
	return Network(from)
}

// parseHop reads an address as proxies write it, with or without a port.
func parseHop(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Unmap().WithZone(""), true
	}
	if host, _, err := net.SplitHostPort(s); err == nil {
		if a, err := netip.ParseAddr(host); err == nil {
			return a.Unmap().WithZone(""), true
		}
	}
	return netip.Addr{}, false
}

func (l *Limiter) trusted(a netip.Addr) bool {
	for _, p := range l.Proxies {
		if p.Contains(a.WithZone("")) {
			return true
		}
	}
	return false
}

// Network returns the network that counts as one sender: an IPv4 address itself, or the /64 of an
// IPv6 address, because a sender has many of those.
func Network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() || a.IsLoopback() {
		return a
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}
