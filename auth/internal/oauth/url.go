package oauth

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// CheckURL parses a URL that may be fetched, or shown to the user, on behalf of a server. It must
// be https, or http on loopback if the server is on loopback too, without a user and a fragment.
//
// Specification: 2025-11-25, basic/authorization, Communication Security.
func CheckURL(raw string, server *url.URL) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", text.Short(raw))
	case u.Host == "" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "":
		return nil, fmt.Errorf("%q must have a host, and neither a user nor a fragment", text.Short(raw))
	case strings.EqualFold(u.Scheme, "https"):
		return u, nil
	case strings.EqualFold(u.Scheme, "http") && IsLoopback(u.Hostname()) && IsLoopback(server.Hostname()):
		return u, nil
	}
	return nil, fmt.Errorf("%q is not an https URL; http is allowed on loopback only", text.Short(raw))
}

// IsLoopback reports whether a host is this machine by its spelling. It does not resolve names.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// Origin returns the scheme, host and port of a URL, in lower case and with the default port added.
func Origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// Canonical returns the URI of a server as a resource: its scheme, host and path. It omits the
// query, which may hold a key.
//
// Specification: 2025-11-25, basic/authorization, Canonical Server URI.
func Canonical(server *url.URL) string {
	u := url.URL{Scheme: strings.ToLower(server.Scheme), Host: strings.ToLower(server.Host), Path: server.Path, RawPath: server.RawPath}
	if u.Path == "/" {
		u.Path, u.RawPath = "", ""
	}
	return u.String()
}

// WellKnownResource is the path of the metadata of a protected resource (RFC 9728, 3).
const WellKnownResource = "/.well-known/oauth-protected-resource"

// WellKnown returns the well-known path in front of the path of a URL, if the URL has one, and then
// the well-known path alone.
func WellKnown(path string, u *url.URL) []*url.URL {
	list := []*url.URL{{Path: path}}
	if own := strings.TrimSuffix(u.Path, "/"); own != "" {
		escaped := strings.TrimSuffix(u.EscapedPath(), "/")
		list = append([]*url.URL{{Path: path + own, RawPath: path + escaped}}, list...)
	}
	return list
}
