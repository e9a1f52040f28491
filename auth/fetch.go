package auth

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/zone"
)

// What this file guards against is a hostile server: it names URLs that we fetch, and
// what is there is its choice too.

const (
	maxDocument  = 256 << 10        // bytes of metadata, and of the answers of an authorization server
	maxRedirects = 3                // of metadata, within one origin
	fetchTimeout = 30 * time.Second // for one exchange
)

// errAbsent says that there is no such document.
var errAbsent = errors.New("there is none")

// checkURL tells whether we may fetch a URL, or send the user to it, on behalf of a server.
// Specification: 2025-11-25, basic/authorization, Communication Security.
func checkURL(raw string, server *url.URL) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no URL", clip(raw))
	case u.Host == "" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "":
		return nil, fmt.Errorf("%q must have a host, and neither a user nor a fragment", clip(raw))
	case strings.EqualFold(u.Scheme, "https"):
		return u, nil
	case strings.EqualFold(u.Scheme, "http") && isLoopback(u.Hostname()) && isLoopback(server.Hostname()):
		return u, nil
	}
	return nil, fmt.Errorf("%q is not https; http is for servers on loopback alone", clip(raw))
}

// isLoopback tells whether a host is this machine by its spelling.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// origin returns scheme, host and port of a URL in one spelling.
func origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// fetcher reads documents of others on behalf of one server.
type fetcher struct {
	server *url.URL
	client *http.Client
	pages  bool // users are sent to authorization servers: they must have a page, and PKCE
}

// guarded carries requests on behalf of a server to where a guard lets them go, to those whom
// roots know; nil: as usual.
func guarded(server *url.URL, roots *x509.CertPool) http.RoundTripper {
	g := &guard{server: server.Hostname()}
	base := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: fetchTimeout, ControlContext: g.check}).DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableKeepAlives:   true, // exchanges are few, and each address is looked at
	}
	if roots != nil {
		base.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return g.over(base)
}

// newFetcher returns a fetcher that sends requests by base. If that is nil, it has
// connections of its own, and looks at the address of each.
func newFetcher(server *url.URL, base http.RoundTripper) *fetcher {
	if base == nil {
		base = guarded(server, nil)
	}
	return &fetcher{server: server, client: &http.Client{Transport: base, Timeout: fetchTimeout, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case via[0].Method != http.MethodGet:
			return http.ErrUseLastResponse // a form with secrets goes nowhere else
		case len(via) > maxRedirects:
			return errors.New("too many redirects")
		case origin(req.URL) != origin(via[0].URL):
			return fmt.Errorf("a redirect leads to another origin, %q", clip(origin(req.URL)))
		}
		return nil
	}}}
}

// get reads a JSON document. errAbsent: it does not exist there.
func (f *fetcher) get(ctx context.Context, u *url.URL, version string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("MCP-Protocol-Version", version)
	r, err := f.do(req)
	if err != nil {
		return err
	}
	switch status := r.status; {
	case status == http.StatusOK && r.isJSON():
		if err := jsonx.Unmarshal(r.body, into); err != nil {
			return fmt.Errorf("%s: the document is not what it should be: %w", clip(u.String()), err)
		}
		return nil
	case status == http.StatusOK, status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests:
		return errAbsent // some answer every path with a page
	}
	return fmt.Errorf("%s: HTTP %d; try again later", clip(u.String()), r.status)
}

// reply is the answer to one request.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r *reply) isJSON() bool {
	t, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

// post sends a body to an endpoint of an authorization server and reads its answer.
func (f *fetcher) post(ctx context.Context, u *url.URL, contentType string, body []byte, user, password string) (status int, answer []byte, err error) {
	h := http.Header{"Content-Type": {contentType}}
	if user != "" {
		setBasic(h, user, password)
	}
	r, err := f.send(ctx, u, h, body)
	if err != nil {
		return 0, nil, err
	}
	return r.status, r.body, nil
}

// setBasic puts the credentials of a client into a header (RFC 6749, 2.3.1).
func setBasic(h http.Header, id, secret string) {
	pair := url.QueryEscape(id) + ":" + url.QueryEscape(secret)
	h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
}

// send is post with a header of the caller's, which it may change.
func (f *fetcher) send(ctx context.Context, u *url.URL, h http.Header, body []byte) (*reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	h.Set("Accept", "application/json")
	req.Header = h
	return f.do(req)
}

func (f *fetcher) do(req *http.Request) (*reply, error) {
	res, err := f.client.Do(req)
	if err != nil {
		var ue *url.Error // its URL may be as long as a server likes
		if errors.As(err, &ue) {
			err = fmt.Errorf("%s %q: %w", ue.Op, clip(ue.URL), ue.Err)
		}
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", clip(req.URL.String()), err)
	case len(body) > maxDocument:
		return nil, fmt.Errorf("%s: the answer has more than %d bytes", clip(req.URL.String()), maxDocument)
	}
	return &reply{res.StatusCode, res.Header, body}, nil
}

// guard refuses connections to addresses further inside than those of the server on whose
// behalf they are made. It looks when the address is dialled: a name may lead elsewhere
// each time that it is asked for.
type guard struct{ server string }

type directKey struct{}

// over marks requests that go through no proxy. A proxy decides about addresses itself.
func (g *guard) over(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if proxy, err := http.ProxyFromEnvironment(req); err == nil && proxy == nil {
			req = req.WithContext(context.WithValue(req.Context(), directKey{}, g.zone(req.Context())))
		}
		return base.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// zone is that of the server: public, if it is not known.
func (g *guard) zone(ctx context.Context) zone.Zone {
	if isLoopback(g.server) {
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

func (g *guard) check(ctx context.Context, _, address string, _ syscall.RawConn) error {
	most, direct := ctx.Value(directKey{}).(zone.Zone)
	if !direct {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if zone.Of(at.Addr()) > most {
		return fmt.Errorf("the server named an address inside of this network, %s, and is not there itself", at.Addr())
	}
	return nil
}

// clip bounds text of others for use in an error.
func clip(s string) string { return text.Clip(s, 200) }
