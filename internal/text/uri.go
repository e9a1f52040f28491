package text

import (
	"net/url"
	"strings"
)

// URI returns a URI or a URI template without the parts that may be secret: user, query and
// fragment. Of a text that is not a URI it leaves out the same parts, so that a log shows the rest.
func URI(uri string) string {
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		uri = strings.TrimSuffix(uri[:i], "{") // of {?name} or {#name}
	}
	u, err := url.Parse(uri)
	if err != nil {
		return withoutUser(uri) // such as x://{host}, or with a bad escape
	}
	u.User = nil
	u.Opaque = u.Opaque[strings.LastIndexByte(u.Opaque, '@')+1:]
	return strings.NewReplacer("%7B", "{", "%7D", "}").Replace(u.String())
}

// withoutUser returns a text like a URI without its user.
func withoutUser(uri string) string {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok {
		return uri[strings.LastIndexByte(uri, '@')+1:]
	}
	from := scheme + ":"
	if path, ok := strings.CutPrefix(rest, "//"); ok {
		authority, _, _ := strings.Cut(path, "/")
		if _, port, _ := strings.Cut(authority, ":"); strings.Contains(authority, "@") || strings.Trim(port, "0123456789") == "" {
			return from + "//" + path[strings.LastIndexByte(authority, '@')+1:]
		}
		from, rest = from+"//", path // x://user:pass/word@host
	}
	return from + rest[strings.LastIndexByte(rest, '@')+1:]
}
