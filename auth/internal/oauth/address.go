package oauth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/internal/zone"
)

// Guarded returns a transport for requests on behalf of a server. It does not connect to addresses
// further inside than the server's own, and for a server without a host only to public ones; a proxy from the environment decides about addresses
// itself. The certificate authorities in roots are trusted; nil: those of the system.
func Guarded(server *url.URL, roots *x509.CertPool) http.RoundTripper {
	g := &addressGuard{server: server.Hostname()}
	base := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: Timeout, ControlContext: g.check}).DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableKeepAlives:   true, // exchanges are few, and each dialled address is checked
	}
	if roots != nil {
		base.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	g.base = base
	return g
}

// addressGuard refuses connections to addresses further inside than those of a server. It checks
// the address when it is dialled, because a name may resolve to another address at each lookup.
type addressGuard struct {
	server string // its host
	base   http.RoundTripper
}

// directKey is the context key of the innermost zone that a request without a proxy may reach.
type directKey struct{}

// RoundTrip implements http.RoundTripper.
func (g *addressGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	if proxy, err := http.ProxyFromEnvironment(req); err == nil && proxy == nil {
		req = req.WithContext(context.WithValue(req.Context(), directKey{}, g.zone(req.Context())))
	}
	return g.base.RoundTrip(req)
}

// zone returns the zone of the server: public if it is unknown.
func (g *addressGuard) zone(ctx context.Context) zone.Zone {
	if IsLoopback(g.server) {
		return zone.Local
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", g.server)
	if err != nil || len(ips) == 0 {
		return zone.Public
	}
	z := zone.Of(ips[0])
	for _, ip := range ips {
		z = min(z, zone.Of(ip))
	}
	return z
}

// check is the ControlContext of a net.Dialer.
func (g *addressGuard) check(ctx context.Context, _, address string, _ syscall.RawConn) error {
	most, direct := ctx.Value(directKey{}).(zone.Zone)
	if !direct {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if zone.Of(at.Addr()) > most {
		return fmt.Errorf("the server named an address inside of this network, %s, but is outside of it itself", at.Addr())
	}
	return nil
}
