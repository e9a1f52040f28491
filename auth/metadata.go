package auth

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// ResourceMetadata is the protected resource metadata of a server, for clients that want to log in
// (RFC 9728, 2). Resource is required.
type ResourceMetadata struct {
	// Resource is the URI of the server as its clients know it: scheme, host and path, such as
	// "https://mcp.example.com/mcp". Tokens are made for it, so it never depends on a request.
	Resource string

	// AuthorizationServers are the issuers of tokens for the server. Nil: those of the Guard's
	// verifiers.
	AuthorizationServers []string

	// Scopes are those that clients request if a challenge names none. Leave offline_access out,
	// because it is not a scope of a resource (2026-07-28).
	Scopes []string

	Name          string // for people to see
	Documentation string // URL of a page for developers
}

const (
	// metadataQuery, added to the URL of the server itself, makes the metadata URL that challenges
	// name. A request for it reaches the Guard wherever the Guard is mounted; a request for
	// wellKnownResource reaches only a Guard around a whole mux.
	metadataQuery = "oauth-protected-resource"

	maxChallengePath = 1 << 10 // bytes of a request's path that a challenge repeats
)

// resource is the canonical form of Resource and where its metadata is.
type resource struct {
	uri   string   // canonical
	paths []string // where the metadata is served beside metadataQuery: before the path of the server, and alone
	site  string   // scheme and host of Resource
	path  string   // of Resource, escaped
	doc   []byte   // nil: there are no authorization servers, so there is no metadata
}

// resolve checks the metadata; issuers are those of the verifiers.
func (m *ResourceMetadata) resolve(issuers []string) (*resource, error) {
	u, err := url.Parse(m.Resource)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "" || u.Opaque != "":
		return nil, fmt.Errorf("the Resource %q must be a URI of scheme, host and path only", text.Short(m.Resource))
	case !strings.EqualFold(u.Scheme, "https") && !strings.EqualFold(u.Scheme, "http"):
		return nil, fmt.Errorf("the Resource %q must be an https URI, or http where tokens cannot be overheard", text.Short(m.Resource))
	case slices.Contains(m.Scopes, oauth.OfflineAccess):
		return nil, fmt.Errorf("the Resource %q lists offline_access, which is not a scope of a server; leave it out", text.Short(m.Resource))
	}
	for _, s := range m.Scopes {
		if !oauth.IsScope(s) {
			return nil, fmt.Errorf("%q is not a scope (RFC 6749, 3.3)", text.Short(s))
		}
	}
	res := &resource{uri: oauth.Canonical(u)}
	if m.AuthorizationServers != nil {
		issuers = m.AuthorizationServers
	}
	if len(issuers) == 0 {
		return res, nil // API keys and passwords: there is nowhere to log in
	}
	for _, p := range oauth.WellKnown(oauth.WellKnownResource, u) {
		res.paths = append(res.paths, p.Path)
	}
	res.site, res.path = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(), u.EscapedPath()
	res.doc, err = jsonx.Marshal(struct {
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers"`
		Methods  []string `json:"bearer_methods_supported"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Name     string   `json:"resource_name,omitempty"`
		Docs     string   `json:"resource_documentation,omitempty"`
	}{res.uri, issuers, []string{"header"}, m.Scopes, m.Name, m.Documentation})
	return res, err
}

// serves reports whether a request is for the metadata.
func (res *resource) serves(r *http.Request) bool {
	if res == nil || res.doc == nil {
		return false
	}
	if q := r.URL.RawQuery; q != "" && strings.TrimSuffix(q, "=") == metadataQuery && r.Method != http.MethodPost {
		return true
	}
	return strings.HasPrefix(r.URL.Path, oauth.WellKnownResource) && slices.Contains(res.paths, r.URL.Path)
}

// urlFor returns the URL of the metadata for the challenge of a request, whose target is as the
// client wrote it. Below the path of Resource, the URL has the path of the request, where the
// Guard is. Elsewhere a proxy has changed the path, and the URL has that of Resource. Scheme and
// host are never those of a request. Empty: there is no metadata.
func (res *resource) urlFor(target string) string {
	if res == nil || res.doc == nil {
		return ""
	}
	path, _, _ := strings.Cut(target, "?")
	below, ok := strings.CutPrefix(path, strings.TrimSuffix(res.path, "/"))
	if !ok || below != "" && below[0] != '/' || len(path) > maxChallengePath {
		path = res.path
	}
	if path == "" {
		path = "/"
	}
	return res.site + path + "?" + metadataQuery
}

// ServeHTTP serves the metadata to every caller, and to pages of all origins.
func (res *resource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "max-age=300")
		_, _ = w.Write(res.doc)
	case http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "GET, HEAD")
		h.Set("Access-Control-Allow-Headers", "mcp-protocol-version, accept, content-type")
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "read the metadata with GET", http.StatusMethodNotAllowed)
	}
}

// sameResource compares an audience with a resource. URIs are compared without the case of scheme
// and host, and with or without a lone slash at the end.
//
// Specification: 2026-07-28, basic/authorization, Canonical Server URI.
func sameResource(audience, resource string) bool {
	if audience == resource {
		return true
	}
	a, err := url.Parse(audience)
	if err != nil || a.Host == "" || a.User != nil || a.Fragment != "" || a.RawQuery != "" || a.ForceQuery {
		return false
	}
	b, err := url.Parse(resource)
	return err == nil && b.Host != "" && b.RawQuery == "" && oauth.Canonical(a) == oauth.Canonical(b)
}
