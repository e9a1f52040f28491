package deploy

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Page is the page for people.
type Page struct {
	Client  string // id of the public client that is registered for it at the authorization server of Auth; empty: people do not log in there
	Sandbox string // origin of another host at which it shows views of apps, such as https://apps.example.com; empty: none
}

// PageClient returns the client id of the page; empty: none.
func (f *File) PageClient() string {
	if f == nil || f.Page == nil {
		return ""
	}
	return f.Page.Client
}

// PageSandbox returns the origin of the views of the page; empty: none.
func (f *File) PageSandbox() string {
	if f == nil || f.Page == nil {
		return ""
	}
	return f.Page.Sandbox
}

func (r *reader) page(n *yaml.Node) {
	p := new(Page)
	r.file.Page = p
	ok := r.mapping(n, "page", map[string]func(*yaml.Node){
		"client":  func(n *yaml.Node) { p.Client = r.text(n, "page.client") },
		"sandbox": func(n *yaml.Node) { p.Sandbox = r.origin(n, "page.sandbox") },
	})
	if ok && !r.file.Has("page.client") && !r.file.Has("page.sandbox") {
		r.Fault(n, "page: {client: ID}", "page needs client or sandbox")
	}
}

// origin reads the origin of a host, and returns it as browsers write it.
func (r *reader) origin(n *yaml.Node, member string) string {
	said := strings.ToLower(strings.TrimSuffix(r.text(n, member), "/"))
	u, err := url.Parse(said)
	switch {
	case said == "": // a fault already
		return ""
	case err != nil, said != "https://"+u.Host, u.Hostname() == "", strings.HasSuffix(u.Hostname(), "."), strings.HasSuffix(u.Host, ":"),
		strings.Trim(u.Host, "abcdefghijklmnopqrstuvwxyz0123456789.-:[]") != "":
		r.Fault(n, "write it like https://apps.example.com", "%s is not the origin of a host with HTTPS", member)
		return ""
	}
	return strings.TrimSuffix(said, ":443")
}

// pageFits checks the page against the other members.
func (r *reader) pageFits() {
	f := r.file
	if f.Page.Client != "" && !f.oneIssuer() {
		at := f.places["page.client"]
		r.FaultAt(at.line, at.column, "have one of jwt:ISSUER and introspect:ISSUER in auth", "page.client needs the authorization server at which people log in")
	}
	if f.Page.Sandbox == "" {
		return
	}
	own, _, _ := net.SplitHostPort(f.Listen.HTTP)
	names := []string{own}
	if f.Login != nil {
		if u, err := url.Parse(f.Login.URL); err == nil {
			names = append(names, u.Hostname())
		}
	}
	views, _ := url.Parse(f.Page.Sandbox)
	if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, views.Hostname()) }) {
		at := f.places["page.sandbox"]
		r.FaultAt(at.line, at.column, "name another host that leads here too", "page.sandbox is the host of the gateway itself, whose cookies browsers send to all its ports")
	}
}

// oneIssuer reports whether auth names exactly one authorization server. People cannot log in at one of which only the
// address for introspection is known.
func (f *File) oneIssuer() bool {
	var names []string
	for _, spec := range f.Auth {
		kind, rest, _ := strings.Cut(spec, ":")
		name, _, _ := strings.Cut(rest, ",")
		if (kind == "jwt" || kind == "introspect") && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return len(names) == 1
}
