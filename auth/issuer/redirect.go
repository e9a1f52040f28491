package issuer

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/text"
)

const maxRedirectURI = 512 // bytes

// neverApps are schemes that a browser does not pass on to an app.
var neverApps = []string{"http", "https", "ws", "wss", "ftp", "file", "data", "javascript", "vbscript", "blob", "about", "filesystem", "view-source", "mailto"}

// isAppScheme reports whether a scheme can belong to an app.
func isAppScheme(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	return s != "" && !slices.Contains(neverApps, s)
}

// checkRedirect reports whether an answer may be sent to a URI: https, or http on loopback, or the
// scheme of an app that is allowed. Characters that browsers and this program could read
// differently are refused.
//
// Specification: 2026-07-28, basic/authorization, Communication Security; RFC 8252, 7.
func (s *Server) checkRedirect(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case len(raw) > maxRedirectURI:
		return nil, fmt.Errorf("%q has more than %d bytes", text.Short(raw), maxRedirectURI)
	case err != nil || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"\\<>^`{|}", r) }):
		return nil, fmt.Errorf("%q is not a URI", text.Short(raw))
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return nil, fmt.Errorf("%q has a fragment", text.Short(raw))
	case u.User != nil:
		return nil, fmt.Errorf("%q has a user name", text.Short(raw))
	case u.Scheme == "https" && u.Hostname() != "", u.Scheme == "http" && oauth.IsLoopback(u.Hostname()):
		return u, nil
	case slices.Contains(s.Schemes, u.Scheme):
		return u, nil
	case u.Scheme == "http":
		return nil, fmt.Errorf("%q is http, which only a program on the person's machine may use", text.Short(raw))
	}
	return nil, fmt.Errorf("%q has a scheme that this server does not allow", text.Short(raw))
}

// sameRedirect compares a redirect URI with a registered one: character by character, except for the
// port on loopback (RFC 8252, 7.3).
func sameRedirect(registered, given string) bool {
	if registered == given {
		return true
	}
	a, err := url.Parse(registered)
	if err != nil {
		return false
	}
	b, err := url.Parse(given)
	return err == nil && local(a) && local(b) && a.Hostname() == b.Hostname() && a.EscapedPath() == b.EscapedPath() &&
		a.RawQuery == b.RawQuery && a.ForceQuery == b.ForceQuery
}

// local reports whether a redirect leads to a program on the person's machine over http.
func local(u *url.URL) bool { return u.Scheme == "http" && oauth.IsLoopback(u.Hostname()) }

// isHTTPS reports whether a redirect leads to a web site.
func isHTTPS(redirect string) bool { return strings.HasPrefix(redirect, "https://") }

// withQuery adds parameters to a URI that was checked.
func withQuery(raw string, q url.Values) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += q.Encode()
	return u.String()
}
