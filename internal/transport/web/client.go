package web

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
)

const maxRedirects = 5

// NewClient returns an HTTP client that follows only redirects that keep the origin, the method and
// the body: headers must not go to other servers, and any other redirect is returned as an error
// response. The client is a copy of theirs, whose CheckRedirect is called afterwards. If theirs is
// nil, the client has its own connections, and release closes the idle ones.
//
// The tap, if not nil, gets every exchange.
func NewClient(theirs *http.Client, tap *engine.Tap) (c *http.Client, release func()) {
	release = func() {}
	c = &http.Client{}
	if theirs != nil {
		*c = *theirs
	} else {
		own := &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        256,
			MaxIdleConnsPerHost: 128,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
		}
		c.Transport, release = own, own.CloseIdleConnections
	}
	if tap != nil {
		base := c.Transport
		if base == nil {
			base = http.DefaultTransport
		}
		c.Transport = &recordingTransport{base: base, tap: tap}
	}
	more := c.CheckRedirect
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		status := 0
		if req.Response != nil {
			status = req.Response.StatusCode
		}
		keeps := status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
		if !keeps || !SameOrigin(req.URL, via[0].URL) || len(via) > maxRedirects {
			return http.ErrUseLastResponse
		}
		if more != nil {
			return more(req, via)
		}
		return nil
	}
	return c, release
}

// SameOrigin reports whether two URLs have the same scheme, host and port (RFC 6454).
func SameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case strings.EqualFold(u.Scheme, "http"):
		return "80"
	case strings.EqualFold(u.Scheme, "https"):
		return "443"
	}
	return ""
}
