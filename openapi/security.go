package openapi

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// A scheme is one way to say who calls.
type scheme struct {
	kind string // "bearer", "basic", "header", "query" or "cookie"; empty: it cannot be used
	name string // of the header, of the member of the query or of the cookie
}

// A requirement is a set of schemes that are needed together; several are alternatives.
type requirement []string

// schemes reads the security schemes.
func (r *reader) schemes() {
	r.doc.schemes = map[string]*scheme{}
	list := r.root.get("securityDefinitions")
	if !r.old {
		list = r.root.get("components").get("securitySchemes")
	}
	if list == nil {
		return
	}
	for _, m := range list.members {
		r.place = "security scheme " + m.name
		n, err := r.resolve(m.value)
		if err != nil {
			r.unmapped(m.value, "%v", err)
			continue
		}
		s := &scheme{}
		r.doc.schemes[m.name] = s
		switch kind := n.string("type"); kind {
		case "basic":
			s.kind = "basic"
		case "oauth2", "openIdConnect":
			s.kind = "bearer"
		case "http":
			switch strings.ToLower(n.string("scheme")) {
			case "basic":
				s.kind = "basic"
			case "bearer":
				s.kind = "bearer"
			default:
				r.unmapped(n, "the HTTP scheme %s is not known; put its header in the headers of the server", quote(n.string("scheme")))
			}
		case "apiKey":
			s.name = n.string("name")
			if in := n.string("in"); s.name != "" && slices.Contains([]string{"header", "query", "cookie"}, in) {
				s.kind = in
			} else {
				r.unmapped(n, "an API key in %s cannot be sent", quote(in))
			}
		default:
			r.unmapped(n, "the type %s cannot be used", quote(kind))
		}
	}
}

// requirements reads what an operation needs. A parameter that is a credential is not an argument.
func (r *reader) requirements(o *Operation, op *node) error {
	list := op.get("security")
	if list == nil {
		list = r.root.get("security")
	}
	if list == nil {
		return nil
	}
	for _, n := range list.items {
		need := requirement{}
		for _, m := range n.members {
			need = append(need, m.name)
		}
		o.security = append(o.security, need)
	}
	o.parameters = slices.DeleteFunc(o.parameters, func(p *parameter) bool {
		for _, need := range o.security {
			for _, name := range need {
				if s := r.doc.schemes[name]; s != nil && s.kind == p.in && strings.EqualFold(s.name, p.name) {
					return true
				}
			}
		}
		return false
	})
	return nil
}

// Schemes returns the names of the security schemes for which there may be a credential, in alphabetical order.
func (d *Document) Schemes() (names []string) {
	for name, s := range d.schemes {
		if s.kind != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// checkCredential returns an error for a credential that cannot be sent.
func (d *Document) checkCredential(name, value string) error {
	s := d.schemes[name]
	switch {
	case s == nil || s.kind == "":
		return fmt.Errorf("the document has no security scheme %q that can be used; it has %s", name, orNone(d.Schemes()))
	case value == "" || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return fmt.Errorf("the credential for %q is empty or has a control character in it", name)
	case s.kind == "basic" && !strings.Contains(value, ":"):
		return fmt.Errorf("the credential for %q is USER:PASSWORD", name)
	case s.kind == "bearer" && strings.ContainsFunc(value, unicode.IsSpace):
		return fmt.Errorf("the credential for %q has a space in it; give the token alone, without Bearer", name)
	case s.kind == "header" && !mayBeHeader(s.name) && !fixedHeaders[http.CanonicalHeaderKey(s.name)]:
		return fmt.Errorf("the credential for %q cannot be in the header %q", name, s.name)
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// held returns the credentials for the schemes of a requirement, nil if one is missing.
func (x *exchange) held(ctx context.Context, need requirement) ([]string, error) {
	var values []string
	for _, name := range need {
		value := x.options.Credentials[name]
		if value == "" && x.options.Credential != nil && x.doc.schemes[name] != nil {
			var err error
			if value, err = x.options.Credential(ctx, name); err == nil && value != "" {
				x.own = append(x.own, x.learnCredential(value)...)
				err = x.doc.checkCredential(name, value)
			}
			if err != nil {
				return nil, fmt.Errorf("this server cannot use its credential for %q: %s", name, x.hide(err.Error()))
			}
		}
		if value == "" {
			return nil, nil
		}
		values = append(values, value)
	}
	return values, nil
}

// authorize adds the credentials of the first alternative that has all of its own.
func (x *exchange) authorize(req *http.Request, o *Operation) error {
	for _, need := range o.security {
		values, err := x.held(req.Context(), need)
		if err != nil {
			return err
		}
		for i, value := range values {
			switch s := x.doc.schemes[need[i]]; s.kind {
			case "bearer":
				req.Header.Set("Authorization", "Bearer "+value)
			case "basic":
				req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(value)))
			case "header":
				req.Header.Set(s.name, value)
			case "query":
				addPairs(req.URL, []pair{{escapeSegment(s.name), escapeSegment(value)}})
			case "cookie":
				req.AddCookie(&http.Cookie{Name: s.name, Value: value})
			}
		}
		if values != nil {
			return nil
		}
	}
	return nil
}

// missing says which credential would let an operation pass that was refused.
func (x *exchange) missing(ctx context.Context, o *Operation) string {
	var ways []string
	for _, need := range o.security {
		if values, err := x.held(ctx, need); len(need) == 0 || values != nil || err != nil {
			return ""
		}
		ways = append(ways, strings.Join(need, " and "))
	}
	if len(ways) == 0 {
		return ""
	}
	return "The API asks for credentials, and this server was started without " + strings.Join(ways, ", or ") + "."
}
