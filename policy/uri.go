package policy

import (
	"context"
	"net/url"
	"path"
	"strings"
)

// admitURI is admit for a resource. If the URI has a simpler form, both forms must be allowed. So
// "file:///public/%2e%2e/etc" does not bypass a rule about "file:///etc", whether or not a server
// simplifies it.
func (g *gate) admitURI(ctx context.Context, a *Access) error {
	if err := g.admit(ctx, a); err != nil {
		return err
	}
	simple := *a
	if simple.Name = simplified(a.Name); simple.Name == a.Name {
		return nil
	}
	return g.admit(ctx, &simple)
}

// simplified returns a URI with its scheme and host in lower case, and without dot segments,
// backslashes and needless escapes in its path.
func simplified(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Opaque != "" || u.Path == "" {
		return uri
	}
	clean := path.Clean(strings.ReplaceAll(u.Path, `\`, "/"))
	if strings.HasSuffix(u.Path, "/") && clean != "/" {
		clean += "/"
	}
	host := strings.ToLower(u.Host)
	if clean == u.Path && u.RawPath == "" && host == u.Host && strings.HasPrefix(uri, u.Scheme) {
		return uri
	}
	u.Path, u.RawPath, u.Host = clean, "", host
	return u.String()
}
