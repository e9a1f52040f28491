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
	"time"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/zone"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The threat: a model may have read the URL on a hostile page, whose author then also controls the
// redirects and the content.
//
//   - Addresses are checked as they are dialled, so that a name cannot resolve differently
//     afterwards.
//   - Requests do not carry cookies, credentials or a referrer, and do not use a proxy from the
//     environment.
//   - Redirects, headers, bytes after decompression, and time in all are bounded.

const (
	maxURL     = 4 << 10  // bytes
	maxHeader  = 64 << 10 // bytes of a response's header
	dialTime   = 10 * time.Second
	beat       = time.Second // between notifications of progress
	maxMessage = 1000        // bytes of an error that may contain a peer's text
)

// web opens URLs.
type web struct {
	options Options
	guard   zone.Guard
	client  *http.Client
}

func newWeb(o Options) *web {
	w := &web{options: o, guard: o.guard()}
	transport := &http.Transport{
		DialContext:            w.guard.Dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialTime,
		DisableKeepAlives:      true, // each exchange is dialled, and checked
		MaxResponseHeaderBytes: maxHeader,
	}
	if o.Proxy != nil { // it is what is dialled, and checks addresses
		transport.Proxy, transport.DialContext = http.ProxyURL(o.Proxy), (&net.Dialer{Timeout: dialTime}).DialContext
	}
	w.client = &http.Client{Transport: transport, CheckRedirect: w.redirect}
	return w
}

// refused returns the error for an address that this server must not use, with what would permit it.
func refused(r *zone.Refusal) error {
	permits := "with allow-private, or with allow-host for this host only"
	if r.Zone == zone.Link {
		permits = "with allow-host for this host"
	}
	return fmt.Errorf("%q is at %s; this server fetches there only if it was started %s", text.Short(r.Host), r.Zone, permits)
}

// judge returns an error if the server must not connect to a host at an address.
func (w *web) judge(host, port string, ip netip.Addr) error {
	err := w.guard.Judge(host, port, ip)
	if r, ok := zone.IsRefusal(err); ok {
		return refused(r)
	}
	return err
}

// escapeQuery escapes a query for the request line: Go leaves spaces in it.
func escapeQuery(u *url.URL) { u.RawQuery = queryEscaper.Replace(u.RawQuery) }

var queryEscaper = strings.NewReplacer(" ", "%20", `"`, "%22", "<", "%3C", ">", "%3E")

// check returns an error if the URL itself shows that it must not be fetched.
func (w *web) check(u *url.URL) error {
	shown := shownURL(u, 200)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is not an http or https URL; write it in full, such as https://example.com/", shown)
	case u.Hostname() == "" || u.Opaque != "":
		return fmt.Errorf("%q does not have a host", shown)
	case u.User != nil:
		return fmt.Errorf("%q has a user name or password in it, which are not sent; leave them out", shown)
	case len(u.String()) > maxURL:
		return fmt.Errorf("%q is longer than %d bytes", shown, maxURL)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		// Dialling would find the same, except with a proxy.
		return w.judge(u.Hostname(), portOf(u), ip)
	}
	return nil
}

// redirect decides about each redirect. The requests so far are in via.
func (w *web) redirect(req *http.Request, via []*http.Request) error {
	from, to := via[len(via)-1].URL, req.URL
	escapeQuery(to)
	switch {
	case len(via) > w.options.MaxRedirects:
		return fmt.Errorf("%d redirects are too many; the last leads to %q", len(via), shownURL(to, 200))
	case from.Scheme == "https" && to.Scheme == "http":
		return fmt.Errorf("%q redirects from https to http, where anybody could change it: %q; fetch that URL itself if you want it",
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
	// The transport asks for gzip, and decompresses it.
	if encoding := res.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		res.Body.Close()
		return nil, fmt.Errorf("the answer is encoded as %q, which was not asked for", text.Clip(encoding, 60))
	}
	return res, nil
}

// explain turns an error of the HTTP client into one with the next step.
func explain(ctx context.Context, err error) error {
	var dns *net.DNSError
	var in *url.Error
	if r, ok := zone.IsRefusal(err); ok && ctx.Err() == nil {
		return refused(r)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("there is no host %q; check how it is spelt", text.Short(dns.Name))
	case errors.As(err, &dns):
		return fmt.Errorf("the address of host %q was not found in time; try again later", text.Short(dns.Name))
	case errors.As(err, &in):
		err = in.Err
	}
	if strings.Contains(err.Error(), "\n") || len(err.Error()) > maxMessage {
		return fmt.Errorf("%q", text.Clip(err.Error(), maxMessage))
	}
	return err
}

// meter reports the progress of a download to the caller of ctx.
type meter struct {
	io.Reader
	ctx         context.Context // of the call
	done, total int64           // bytes; total is 0 if unknown
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

// shownURL is the beginning of a URL, without spaces that could make it read like a sentence, and
// without a password.
func shownURL(u *url.URL, most int) string {
	var b strings.Builder
	for _, c := range []byte(u.Redacted()) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>`\\", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return text.Clip(b.String(), most)
}

// portOf is the port of a URL, named or not.
func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// bytesText formats a number of bytes.
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
