package files

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// isFileURI reports whether text begins like a file: URI. The only such path is a
// relative one with a folder called "file:".
func isFileURI(text string) bool {
	return len(text) >= 7 && strings.EqualFold(text[:7], "file://")
}

// toURI returns the URI of an absolute slashed path (RFC 8089).
func (d dialect) toURI(p string) string {
	u := url.URL{Scheme: "file", Path: p}
	if d.windows {
		if unc, ok := strings.CutPrefix(p, "//"); ok { // \\server\share
			server, rest, _ := strings.Cut(unc, "/")
			u.Host, u.Path = server, "/"+rest
		} else {
			u.Path = "/" + p
		}
	}
	return u.String()
}

// fromURI returns the absolute slashed path of a file: URI.
func (d dialect) fromURI(uri string) (string, error) {
	u, err := url.Parse(uri)
	switch {
	case err != nil || !strings.EqualFold(u.Scheme, "file") || u.Opaque != "":
		return "", fmt.Errorf("%q is not a file: URI", text.Short(uri))
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("%q: a file: URI has neither query nor fragment; write ? as %%3F and # as %%23", text.Short(uri))
	case u.User != nil || u.Port() != "":
		return "", fmt.Errorf("%q does not name a file of this machine", text.Short(uri))
	}
	p := u.Path
	switch local := u.Host == "" || strings.EqualFold(u.Host, "localhost"); {
	case !local && d.windows:
		p = "//" + u.Host + p
	case !local:
		return "", fmt.Errorf("%q does not name a file of this machine", text.Short(uri))
	case d.windows:
		p = d.slashed(strings.TrimPrefix(p, "/"))
	}
	if !d.absolute(p) || strings.ContainsRune(p, 0) {
		return "", fmt.Errorf("%q has no absolute path", text.Short(uri))
	}
	return p, nil
}
