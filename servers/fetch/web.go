package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/internal/zone"
	"github.com/patchbay-dev/patchbay/mcp"
)

// What this file guards against: a URL is the choice of a model that may have read it on a
// hostile page, and so are the places that it redirects to and the bytes that are there.
//
//   - Addresses are judged as they are dialled, so that no name can lead elsewhere afterwards.
//   - Nothing of ours is sent along: no cookies, credentials, referrer; no proxy of the environment.
//   - Redirects, headers, bytes after decompression, and time in all are bounded.

const (
	maxURL     = 4 << 10  // bytes
	maxHeader  = 64 << 10 // bytes of a response's header
	dialTime   = 10 * time.Second
	beat       = time.Second // between notifications of progress
	maxMessage = 1000        // bytes of an error that may have a peer's text in it
)

// web opens what URLs name.
type web struct {
	options Options
	dialer  net.Dialer
	client  *http.Client
}

func newWeb(o Options) *web {
	w := &web{options: o, dialer: net.Dialer{Timeout: dialTime}}
	transport := &http.Transport{
		DialContext:            w.dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialTime,
		DisableKeepAlives:      true, // each exchange is dialled, and judged
		MaxResponseHeaderBytes: maxHeader,
	}
	if o.Proxy != nil {
		transport.Proxy = http.ProxyURL(o.Proxy)
	}
	w.client = &http.Client{Transport: transport, CheckRedirect: w.redirect}
	return w
}

// refusal says that an address is not for this server.
type refusal struct {
	host string
	zone zone.Zone
}

func (r *refusal) Error() string {
	permits := "with allow-private, or with allow-host for this host alone"
	if r.zone == zone.Link {
		permits = "with allow-host for this host"
	}
	return fmt.Sprintf("%q is at %s; this server fetches there only if it was started %s", clip(r.host, 200), r.zone, permits)
}

// dial connects to an address that may be connected to.
func (w *web) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := w.dialer
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if w.options.Proxy == nil { // else the address is the proxy's
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return w.judge(host, port, at.Addr())
		}
	}
	return d.DialContext(ctx, network, address)
}

// judge tells whether a host may be connected to at an address.
func (w *web) judge(host, port string, ip netip.Addr) error {
	most := zone.Public
	if w.options.AllowPrivate {
		most = zone.Local
	}
	z := zone.Of(ip)
	if z <= most || w.options.allowsHost(host, port) {
		return nil
	}
	if w.options.Logger != nil { // the caller does not learn where names inside lead
		w.options.Logger.Info("address refused", "host", host, "addr", ip.String())
	}
	return &refusal{host, z}
}

// escapeQuery makes a query fit for the first line of a request: Go leaves spaces in it.
func escapeQuery(u *url.URL) { u.RawQuery = queryEscaper.Replace(u.RawQuery) }

var queryEscaper = strings.NewReplacer(" ", "%20", `"`, "%22", "<", "%3C", ">", "%3E")

// check tells whether a URL may be fetched, as far as the URL tells.
func (w *web) check(u *url.URL) error {
	shown := shownURL(u, 200)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is no http or https URL; write it in full, such as https://example.com/", shown)
	case u.Hostname() == "" || u.Opaque != "":
		return fmt.Errorf("%q names no host", shown)
	case u.User != nil:
		return fmt.Errorf("%q has a user name or password in it, which are not sent; leave them out", shown)
	case len(u.String()) > maxURL:
		return fmt.Errorf("%q is longer than %d bytes", shown, maxURL)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		// Dialling would find the same, but for a proxy.
		return w.judge(u.Hostname(), portOf(u), ip)
	}
	return nil
}

// redirect decides about each redirect. Via is what was requested so far.
func (w *web) redirect(req *http.Request, via []*http.Request) error {
	from, to := via[len(via)-1].URL, req.URL
	escapeQuery(to)
	switch {
	case len(via) > w.options.MaxRedirects:
		return fmt.Errorf("%d redirects are too many; the last leads to %q", len(via), shownURL(to, 200))
	case from.Scheme == "https" && to.Scheme == "http":
		return fmt.Errorf("%q redirects from https to http, where anybody could change it: %q; fetch that URL itself if it is what you want",
			shownURL(from, 200), shownURL(to, 200))
	}
	req.Header.Del("Referer")
	if err := w.check(to); err != nil {
		return fmt.Errorf("%q redirects: %v", shownURL(from, 200), err)
	}
	return nil
}

// open requests a URL. The caller closes the body.
func (w *web) open(ctx context.Context, u *url.URL, accept string) (*http.Response, error) {
	if err := w.check(u); err != nil {
		return nil, err
	}
	escapeQuery(u)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", w.options.UserAgent)
	req.Header.Set("Accept", accept)
	res, err := w.client.Do(req)
	if err != nil {
		return nil, explain(ctx, err)
	}
	// The transport asks for gzip, and undoes it.
	if encoding := res.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		res.Body.Close()
		return nil, fmt.Errorf("the answer is encoded as %q, which was not asked for", clip(encoding, 60))
	}
	return res, nil
}

// explain makes of an error of the HTTP client what a caller can use.
func explain(ctx context.Context, err error) error {
	var refused *refusal
	var dns *net.DNSError
	var in *url.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("there is no host %q; check how it is spelt", clip(dns.Name, 200))
	case errors.As(err, &dns):
		return fmt.Errorf("the address of host %q was not found in time; try again later", clip(dns.Name, 200))
	case errors.As(err, &in):
		err = in.Err
	}
	if strings.Contains(err.Error(), "\n") || len(err.Error()) > maxMessage {
		return fmt.Errorf("%q", clip(err.Error(), maxMessage))
	}
	return err
}

// meter tells the caller of ctx how far a download is.
type meter struct {
	io.Reader
	ctx         context.Context // of the call
	done, total int64           // bytes; total is 0 if it is not known
	told        time.Time
}

func newMeter(ctx context.Context, body io.Reader, total int64) *meter {
	return &meter{Reader: body, ctx: ctx, total: max(total, 0), told: time.Now()}
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.done += int64(n)
	if now := time.Now(); n > 0 && now.Sub(m.told) >= beat {
		m.told = now
		mcp.Progress(m.ctx, float64(m.done), float64(m.total), bytesText(m.done)+" read")
	}
	return n, err
}

// shownURL is the beginning of a URL, without anything that could be read as a sentence next to
// it, and without a password.
func shownURL(u *url.URL, most int) string {
	var b strings.Builder
	for _, c := range []byte(u.Redacted()) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>`\\", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return clip(b.String(), most)
}

// portOf is the port of a URL, named or not.
func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// bytesText shows a number of bytes to people.
func bytesText(n int64) string {
	switch {
	case n < 0:
		return "unknown size"
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// clip bounds text of others for use in an error.
func clip(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
