package policy

import (
	"context"
	"net/url"
	"path"
	"strings"
)

// admitURI is admit for a resource. A URI that could be written more simply is decided as it
// is and as it would be then: "file:///public/%2e%2e/etc" is no way around a rule about
// "file:///etc", whichever of the two a server makes of it.
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

// simplified returns a URI with its scheme and host in lower case, no dot segments or
// backslashes in its path, and nothing escaped there that need not be.
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
