package screen

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// Suspicions lists properties of a URL that may deceive a reader about its target.
func Suspicions(u *url.URL) []string {
	var out []string
	host := u.Hostname()
	if u.Scheme != "https" && u.Scheme != "http" {
		out = append(out, "it is not a web page but "+strconv.Quote(u.Scheme)+".")
	} else if u.Scheme == "http" && host != "localhost" && !strings.HasPrefix(host, "127.") && host != "::1" {
		out = append(out, "the connection is not encrypted (http).")
	}
	if u.User != nil {
		out = append(out, "the part before the @ is not the site.")
	}
	foreign := strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII })
	if foreign || strings.HasPrefix(host, "xn--") || strings.Contains(host, ".xn--") {
		out = append(out, "its name has letters that look like others.")
	}
	return out
}
