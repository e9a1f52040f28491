package apps

import "strings"

// Policy returns the content security policy that a host enforces on a view: only the origins that
// the view declared. A view without a CSP can connect to nothing. An origin that is invalid in a
// [CSP] is left out, because it could widen the policy.
//
// Specification: extensions/apps, Host Behavior and Content Security Policy
// Enforcement. A view that declared no origin to connect to is allowed none, not even its
// own.
func (n Needs) Policy() string {
	var c CSP
	if n.CSP != nil {
		c = *n.CSP
	}
	var b strings.Builder
	b.WriteString("default-src 'none'")
	// Add writes a directive: the sources given, or the other ones if there are none.
	add := func(name, always string, origins []string, otherwise string) {
		sources := always
		for _, o := range origins {
			if checkOrigin(o) == nil {
				sources += " " + o
			}
		}
		if sources = strings.TrimSpace(sources); sources == "" {
			sources = otherwise
		}
		b.WriteString("; " + name + " " + sources)
	}
	add("script-src", "'self' 'unsafe-inline'", c.Resource, "")
	add("style-src", "'self' 'unsafe-inline'", c.Resource, "")
	add("img-src", "'self' data:", c.Resource, "")
	add("font-src", "'self'", c.Resource, "")
	add("media-src", "'self' data:", c.Resource, "")
	add("connect-src", "", c.Connect, "'none'")
	add("frame-src", "", c.Frame, "'none'")
	add("base-uri", "", c.BaseURI, "'self'")
	add("object-src", "'none'", nil, "")
	return b.String()
}
