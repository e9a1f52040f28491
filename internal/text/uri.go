package text

import (
	"net/url"
	"strings"
)

// URI returns a URI or a URI template without the parts that may be secret: user, query and
// fragment. It is empty if they cannot be found.
func URI(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		if strings.ContainsAny(uri, "@?#") {
			return ""
		}
		return uri // a template, such as x://{host}
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	u.Opaque = u.Opaque[strings.LastIndexByte(u.Opaque, '@')+1:]
	shown := strings.NewReplacer("%7B", "{", "%7D", "}").Replace(u.String())
	return strings.TrimSuffix(shown, "{") // of {?name}
}
