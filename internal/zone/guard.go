package zone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/idna"
)

// Guard decides to which addresses a program connects. It checks an address as it is dialled, so that a name cannot
// resolve differently afterwards. The zero value permits public addresses.
type Guard struct {
	// Private also permits addresses of this machine and of private networks, except link-local ones, where clouds
	// serve credentials.
	Private bool

	// Hosts may be at any address. Each is "host" or "host:port"; a host is a name or an IP address, as it is
	// written in URLs.
	Hosts []string

	// Refused is called with each address that is refused: an error has only the name of the host, because a caller
	// should not learn the addresses of internal names. Nil: nothing is called.
	Refused func(host string, ip netip.Addr)

	Resolver *net.Resolver // nil: the system's
}

// Refusal is the error for an address that a Guard does not permit.
type Refusal struct {
	Host string // as in the URL
	Zone Zone
}

func (r *Refusal) Error() string { return fmt.Sprintf("%q is at %s", r.Host, r.Zone) }

// Check returns an error if one of the hosts is not a host.
func (g *Guard) Check() error {
	for _, h := range g.Hosts {
		if h == "" || strings.ContainsAny(h, "/@ *") {
			return fmt.Errorf("allowed host %q is not a host; write host or host:port", h)
		}
	}
	return nil
}

// Judge returns a [*Refusal] if the program must not connect to a host at an address.
func (g *Guard) Judge(host, port string, ip netip.Addr) error {
	most := Public
	if g.Private {
		most = Local
	}
	z := Of(ip)
	if z <= most || g.allows(host, port) {
		return nil
	}
	if g.Refused != nil {
		g.Refused(host, ip)
	}
	return &Refusal{host, z}
}

// Dial connects to a permitted address, as [net.Dialer.DialContext] does, within 10 seconds.
func (g *Guard) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 10 * time.Second, Resolver: g.Resolver, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return g.Judge(host, port, at.Addr())
	}}
	return d.DialContext(ctx, network, address)
}

// allows reports whether a host may be at any address.
func (g *Guard) allows(host, port string) bool {
	host = plainHost(host)
	for _, allowed := range g.Hosts {
		h, p, err := net.SplitHostPort(allowed)
		if err != nil {
			h, p = allowed, port // without a port, or an IPv6 address alone
		}
		if plainHost(h) == host && p == port {
			return true
		}
	}
	return false
}

// plainHost is one spelling of a host.
func plainHost(host string) string {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.String()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ascii, err := idna.Lookup.ToASCII(host); err == nil { // as it is dialled
		return ascii
	}
	return host
}

// IsRefusal returns the refusal that an error is because of, if it is.
func IsRefusal(err error) (*Refusal, bool) {
	var r *Refusal
	return r, errors.As(err, &r)
}
