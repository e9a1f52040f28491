package inspector

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/apps"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A view of MCP Apps is shown in two frames (extensions/apps, Sandbox proxy). The outer one is a document of another host than
// the page, so it gets no cookie of the page and reads nothing of it. The inner one has the view, with an origin of its own
// that equals no other, and the content security policy of the outer one, which is made here of what the view asks for.
//
// The host of the outer frame serves that document and its script alone.

// maxNeeds bounds the needs of a view in bytes, because they travel in an address.
const maxNeeds = 8 << 10

// sandboxHost returns the host that serves the sandbox; empty: there is none.
func (p *Page) sandboxHost() string {
	u, err := url.Parse(p.Sandbox)
	if err != nil || p.ownName(u.Hostname()) { // a host with both could not be kept apart
		return ""
	}
	return u.Host
}

// ownName reports whether a host that the page has is of a name, at any port: cookies ignore ports.
func (p *Page) ownName(name string) bool {
	hosts := p.Hosts
	if u, err := url.Parse(p.URL); err == nil {
		hosts = append(slices.Clone(hosts), u.Host)
	}
	return slices.ContainsFunc(hosts, func(host string) bool {
		u, err := url.Parse("//" + host)
		return err == nil && strings.EqualFold(u.Hostname(), name)
	})
}

// frames returns the part of the page's own policy that lets it have the sandbox in a frame.
func (p *Page) frames() string {
	if p.sandboxHost() == "" {
		return ""
	}
	return "frame-src " + p.Sandbox + "; "
}

// views returns the origin of the sandbox for the page at a host; empty: views are not shown, and why says the reason.
func (p *Page) views(host string) (origin, why string) {
	own, _ := url.Parse(p.URL)
	switch {
	case p.Sandbox == "" && p.NoSandbox != "":
		return "", p.NoSandbox
	case p.Sandbox == "":
		return "", "this program has no other address for them"
	case p.sandboxHost() == "":
		return "", "the page may be at " + p.Sandbox + " too (--allow-host), which has to be another host"
	case strings.HasPrefix(p.Sandbox, "http:") && (own == nil || !strings.EqualFold(own.Host, host)): // it is of the person's own machine
		return "", "they are shown only on the page at " + p.URL + ", or with page: {sandbox: https://OTHER-HOST} in gateway.yaml"
	}
	return p.Sandbox, ""
}

// sandbox answers a request for the host of the sandbox.
func (p *Page) sandbox(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
	case strings.HasPrefix(r.URL.Path, "/assets/sandbox-"):
		r.SetPathValue("name", strings.TrimPrefix(r.URL.Path, "/assets/"))
		asset(w, r)
		return
	case r.URL.Path == "/sandbox" && (r.Header.Get("Sec-Fetch-Dest") == "iframe" || r.Header.Get("Sec-Fetch-Dest") == ""):
		p.frame(w, r)
		return
	}
	refuse(w, fail(http.StatusForbidden, "this host has the frame of views alone: the page is at %s", p.URL))
}

// frame serves the outer frame of a view, for the page at one of its origins.
func (p *Page) frame(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	page, err := p.origin(asked.Get("page"))
	if err != nil {
		refuse(w, err)
		return
	}
	needs, err := needsOf(json.RawMessage(asked.Get("needs")))
	if err != nil {
		refuse(w, err)
		return
	}
	text, err := assets.ReadFile("assets/sandbox.html")
	if err != nil {
		refuse(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policyOf(needs)+"; frame-ancestors "+page)
	h.Del("X-Frame-Options")
	h.Set("X-Dns-Prefetch-Control", "off")
	h.Set("Connection-Allowlist", connectionsOf(needs))
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), clipboard-read=(), clipboard-write=(), display-capture=(), fullscreen=(), payment=(), usb=(), serial=(), hid=(), bluetooth=(), midi=(), local-fonts=(), screen-wake-lock=(), web-share=(), publickey-credentials-get=()")
	h.Set("Content-Type", kinds[".html"])
	_, _ = w.Write(bytes.ReplaceAll(text, []byte("PAGE"), []byte(html.EscapeString(page)))) // the browser may have gone
}

// origin returns the origin of the page that shows a view, as a browser says it.
func (p *Page) origin(said string) (string, error) {
	u, err := url.Parse(said)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || said != u.Scheme+"://"+u.Host || !p.ownHost(u.Host) {
		return "", fail(http.StatusForbidden, "the frame of a view is for the page at %s", p.URL)
	}
	if shown, why := p.views(u.Host); shown == "" {
		return "", fail(http.StatusConflict, "views are not shown: %s", why)
	}
	return said, nil
}

// policyOf returns the content security policy of a view. A form cannot be sent, because its address would have its
// content.
func policyOf(needs apps.Needs) string { return needs.Policy() + "; form-action 'none'" }

// connectionsOf returns the hosts of the policy of a view once more, for the browsers that have a list of all that a document may
// connect to. It ends WebRTC too, which no policy can, and which leads anywhere.
func connectionsOf(needs apps.Needs) string {
	list := "response-origin"
	if c := needs.CSP; c != nil {
		for _, origin := range slices.Concat(c.Connect, c.Resource, c.Frame, c.BaseURI) {
			list += ` "` + origin + `/*"` // checked: it has no quotes
		}
	}
	return "(" + list + ");redirects=allow;webrtc=block" // where a redirect leads is in the policy
}

// needsOf reads the needs of a view, the member ui of its _meta; empty: it has none.
func needsOf(raw json.RawMessage) (apps.Needs, error) {
	if len(raw) > maxNeeds {
		return apps.Needs{}, fail(http.StatusBadRequest, "the view asks for more than %d bytes of origins", maxNeeds)
	}
	contents := mcp.ResourceContents{URI: "ui://view"}
	if len(raw) > 0 {
		contents.Meta = mcp.Meta{"ui": raw}
	}
	needs, err := apps.NeedsOf(contents)
	if err != nil {
		return apps.Needs{}, fail(http.StatusBadRequest, "the _meta of the view is not valid: %v", err)
	}
	return needs, nil
}

// view answers how a view is shown: the address of its frame, and what it may load. The body is the member ui of its
// _meta.
func (p *Page) view(w http.ResponseWriter, r *http.Request) (any, error) {
	page, err := p.origin(r.Header.Get("Origin"))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxNeeds+1))
	if err != nil {
		raw = make([]byte, maxNeeds+1) // needsOf says that it is too long
	}
	needs, err := needsOf(bytes.TrimSpace(raw))
	if err != nil {
		return nil, err
	}
	checked, err := json.Marshal(needs)
	if err != nil {
		return nil, err
	}
	return map[string]any{"src": p.Sandbox + "/sandbox?" + url.Values{"page": {page}, "needs": {string(checked)}}.Encode(), "policy": policyOf(needs), "csp": needs.CSP}, nil
}
