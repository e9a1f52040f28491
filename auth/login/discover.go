package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// resourceMetadata is the metadata of the MCP server as a protected resource (RFC 9728, 2).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Issuers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
	Bound    bool     `json:"dpop_bound_access_tokens_required"`
}

// issuerMetadata is the metadata of an authorization server (RFC 8414, 2; OpenID Connect Discovery
// 1.0, 3).
type issuerMetadata struct {
	Issuer               string   `json:"issuer"`
	AuthorizeURL         string   `json:"authorization_endpoint"`
	TokenURL             string   `json:"token_endpoint"`
	RegisterURL          string   `json:"registration_endpoint"`
	RevokeURL            string   `json:"revocation_endpoint"`
	TokenMethods         []string `json:"token_endpoint_auth_methods_supported"`
	TokenAlgorithms      []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	DeviceURL            string   `json:"device_authorization_endpoint"`
	Scopes               []string `json:"scopes_supported"`
	Grants               []string `json:"grant_types_supported"`
	Profiles             []string `json:"authorization_grant_profiles_supported"`
	ProofAlgorithms      []string `json:"dpop_signing_alg_values_supported"`
	Challenges           []string `json:"code_challenge_methods_supported"`
	DocumentsAreClients  bool     `json:"client_id_metadata_document_supported"`
	ResponsesNameIssuers bool     `json:"authorization_response_iss_parameter_supported"`
}

// place is an authorization server whose metadata was checked, and what to ask it for.
type place struct {
	issuer   string
	resource string
	scopes   []string // supported by the server; nil if it does not say
	bound    bool     // tokens are to be bound to our key (RFC 9449)

	token            *url.URL
	authorize        *url.URL // nil: none, and no page is wanted
	register, device *url.URL // nil: none
	revoke           *url.URL // nil: none
	meta             issuerMetadata
	defaults         bool // there is no metadata: a server that speaks 2025-03-26
}

const challengeMethod = "S256"

// scheme is that of the tokens that we ask for.
func (p *place) scheme() string {
	if p.bound {
		return schemeDPoP
	}
	return "Bearer"
}

// lasting adds the scope for a refresh token to the wanted scopes if the authorization server
// lists it. It adds nothing to no scopes: then the authorization server picks them.
//
// Specification: 2026-07-28, basic/authorization, Refresh Tokens.
func (p *place) lasting(want []string) []string {
	if len(want) == 0 || !slices.Contains(p.meta.Scopes, oauth.OfflineAccess) {
		return want
	}
	return oauth.Union(want, []string{oauth.OfflineAccess})
}

// covers reports whether a resource is the server or contains it: it has the same origin, and the
// path of the server or one above.
func covers(resource string, server *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "" || oauth.Origin(u) != oauth.Origin(server) {
		return false
	}
	above := strings.TrimSuffix(u.EscapedPath(), "/")
	path := strings.TrimSuffix(server.EscapedPath(), "/")
	return path == above || strings.HasPrefix(path, above+"/")
}

// finder finds the authorization server of an MCP server.
type finder struct {
	*oauth.Fetcher
	pages bool // users are sent to authorization servers: they must have a page, and PKCE
}

// find finds where to log in.
//
// Specification: 2025-11-25, basic/authorization, Authorization Server Discovery; 2025-03-26,
// basic/authorization, Server Metadata Discovery.
func (f *finder) find(ctx context.Context, c challenge, version string) (*place, error) {
	rm, err := f.resource(ctx, c.metadata, version)
	if errors.Is(err, oauth.ErrAbsent) {
		return f.findLegacy(ctx, version)
	}
	if err != nil {
		return nil, fmt.Errorf("metadata of the server: %w", err)
	}
	var faults []error
	for _, issuer := range rm.Issuers[:min(len(rm.Issuers), maxIssuers)] {
		p, err := f.placeOf(ctx, issuer, version)
		if err == nil {
			p.resource, p.scopes, p.bound = rm.Resource, oauth.ParseScopes(strings.Join(rm.Scopes, " ")), rm.Bound
			return p, nil
		}
		faults = append(faults, fmt.Errorf("authorization server %q: %w", text.Short(issuer), err))
	}
	if faults == nil {
		return nil, errors.New("metadata of the server: it names no authorization server")
	}
	return nil, errors.Join(faults...)
}

// maxIssuers bounds how many authorization servers of one server are tried.
const maxIssuers = 3

// resource reads the protected resource metadata from the URL in the challenge, or else from the
// well-known places. The error is ErrAbsent if these have none.
func (f *finder) resource(ctx context.Context, named, version string) (*resourceMetadata, error) {
	var rm resourceMetadata
	err := oauth.ErrAbsent
	if named != "" {
		var u *url.URL
		if u, err = oauth.CheckURL(named, f.Server); err != nil {
			return nil, err
		}
		if err = f.Get(ctx, u, version, &rm); errors.Is(err, oauth.ErrAbsent) {
			return nil, fmt.Errorf("there is none at %q, which its challenge names", text.Short(named)) // no oauth.ErrAbsent
		}
	} else {
		for _, path := range oauth.WellKnown(oauth.WellKnownResource, f.Server) {
			if err = f.Get(ctx, f.Server.ResolveReference(path), version, &rm); !errors.Is(err, oauth.ErrAbsent) {
				break
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if !covers(rm.Resource, f.Server) {
		return nil, fmt.Errorf("it describes %q, not %q", text.Short(rm.Resource), text.Short(oauth.Canonical(f.Server)))
	}
	return &rm, nil
}

// placeOf reads the metadata of an authorization server.
func (f *finder) placeOf(ctx context.Context, issuer, version string) (*place, error) {
	u, err := oauth.CheckURL(issuer, f.Server)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" {
		return nil, errors.New("an issuer must not have a query")
	}
	var m issuerMetadata
	if err := f.Issuer(ctx, issuer, version, &m); err != nil {
		return nil, err
	}
	if f.pages && !slices.Contains(m.Challenges, challengeMethod) {
		return nil, fmt.Errorf("its metadata does not say that it supports PKCE with %s", challengeMethod)
	}
	return f.check(m)
}

// findLegacy finds the authorization server as 2025-03-26 has it: it is the origin of the MCP
// server. That revision does not check the issuer; here it must have that origin. The metadata need
// not mention PKCE there.
func (f *finder) findLegacy(ctx context.Context, version string) (*place, error) {
	var m issuerMetadata
	base := &url.URL{Scheme: f.Server.Scheme, Host: f.Server.Host}
	at := func(path string) string { return base.ResolveReference(&url.URL{Path: path}).String() }
	err := f.Get(ctx, base.ResolveReference(&url.URL{Path: "/.well-known/oauth-authorization-server"}), version, &m)
	defaults := errors.Is(err, oauth.ErrAbsent)
	switch {
	case defaults:
		m = issuerMetadata{Issuer: oauth.Canonical(base), AuthorizeURL: at("/authorize"), TokenURL: at("/token"), RegisterURL: at("/register")}
	case err != nil:
		return nil, fmt.Errorf("metadata of the server as an authorization server: %w", err)
	default:
		u, err := oauth.CheckURL(m.Issuer, f.Server)
		if err != nil || oauth.Origin(u) != oauth.Origin(base) {
			return nil, fmt.Errorf("metadata of the server as an authorization server: it is for %q", text.Short(m.Issuer))
		}
		if f.pages && m.Challenges != nil && !slices.Contains(m.Challenges, challengeMethod) {
			return nil, fmt.Errorf("metadata of the server as an authorization server: PKCE with %s is not supported", challengeMethod)
		}
	}
	p, err := f.check(m)
	if err != nil {
		return nil, err
	}
	p.defaults, p.resource = defaults, oauth.Canonical(f.Server)
	return p, nil
}

// check checks the endpoints of an authorization server.
func (f *finder) check(m issuerMetadata) (*place, error) {
	p := &place{issuer: m.Issuer, meta: m}
	for _, e := range []struct {
		name, url string
		into      **url.URL
	}{
		{"authorization_endpoint", m.AuthorizeURL, &p.authorize},
		{"token_endpoint", m.TokenURL, &p.token},
		{"registration_endpoint", m.RegisterURL, &p.register},
		{"device_authorization_endpoint", m.DeviceURL, &p.device},
		{"revocation_endpoint", m.RevokeURL, &p.revoke},
	} {
		needed := e.into == &p.token || e.into == &p.authorize && f.pages
		if e.url == "" && !needed {
			continue
		}
		u, err := oauth.CheckURL(e.url, f.Server)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		*e.into = u
	}
	return p, nil
}
