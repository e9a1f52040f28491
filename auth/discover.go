package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// resourceMetadata is what a server says of itself (RFC 9728, 2).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Issuers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
	Bound    bool     `json:"dpop_bound_access_tokens_required"`
}

// issuerMetadata is what an authorization server says of itself (RFC 8414, 2; OpenID
// Connect Discovery 1.0, 3).
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

// place is where to log in for a server: an authorization server whose metadata was
// checked, and what to ask it for.
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
	defaults         bool // there is no metadata: a server of 2025-03-26
}

const challengeMethod = "S256"

// offlineAccess is the scope for a refresh token (OpenID Connect Core 1.0, 11).
const offlineAccess = "offline_access"

// scheme is that of the tokens that we ask for.
func (p *place) scheme() string {
	if p.bound {
		return schemeDPoP
	}
	return "Bearer"
}

// lasting adds to the scopes that are wanted the one for a refresh token, where the
// authorization server has it. Alone it is not asked for: without scopes, the authorization
// server picks them.
//
// Specification: 2026-07-28, basic/authorization, Refresh Tokens.
func (p *place) lasting(want []string) []string {
	if len(want) == 0 || !contains(p.meta.Scopes, offlineAccess) {
		return want
	}
	return union(want, []string{offlineAccess})
}

// canonical is the URI of the server as a resource: without what is no part of its name.
// A query stays at home; it may hold a key.
//
// Specification: 2025-11-25, basic/authorization, Canonical Server URI.
func canonical(server *url.URL) string {
	u := url.URL{Scheme: strings.ToLower(server.Scheme), Host: strings.ToLower(server.Host), Path: server.Path, RawPath: server.RawPath}
	if u.Path == "/" {
		u.Path, u.RawPath = "", ""
	}
	return u.String()
}

// covers tells whether a resource is the server, or what the server is a part of: of the
// same origin, and at its path or above.
func covers(resource string, server *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "" || origin(u) != origin(server) {
		return false
	}
	above := strings.TrimSuffix(u.EscapedPath(), "/")
	path := strings.TrimSuffix(server.EscapedPath(), "/")
	return path == above || strings.HasPrefix(path, above+"/")
}

// find finds out where to log in.
//
// Specification: 2025-11-25, basic/authorization, Authorization Server Discovery;
// 2025-03-26, basic/authorization, Server Metadata Discovery.
func (f *fetcher) find(ctx context.Context, c challenge, version string) (*place, error) {
	rm, err := f.resource(ctx, c.metadata, version)
	if errors.Is(err, errAbsent) {
		return f.findLegacy(ctx, version)
	}
	if err != nil {
		return nil, fmt.Errorf("metadata of the server: %w", err)
	}
	var faults []error
	for _, issuer := range rm.Issuers[:min(len(rm.Issuers), maxIssuers)] {
		p, err := f.issuer(ctx, issuer, version)
		if err == nil {
			p.resource, p.scopes, p.bound = rm.Resource, scopes(joinScopes(rm.Scopes)), rm.Bound
			return p, nil
		}
		faults = append(faults, fmt.Errorf("authorization server %q: %w", clip(issuer), err))
	}
	if faults == nil {
		return nil, errors.New("metadata of the server: it names no authorization server")
	}
	return nil, errors.Join(faults...)
}

// maxIssuers bounds the authorization servers of one server that are tried.
const maxIssuers = 3

// resource reads the protected resource metadata: where the challenge says, or else at
// the well-known places. errAbsent: at none of these.
func (f *fetcher) resource(ctx context.Context, named, version string) (*resourceMetadata, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	var rm resourceMetadata
	err := errAbsent
	if named != "" {
		var u *url.URL
		if u, err = checkURL(named, f.server); err != nil {
			return nil, err
		}
		if err = f.get(ctx, u, version, &rm); errors.Is(err, errAbsent) {
			return nil, fmt.Errorf("there is none at %q, which its challenge names", clip(named)) // no errAbsent
		}
	} else {
		for _, path := range wellKnownPaths(wellKnown, f.server) {
			if err = f.get(ctx, f.server.ResolveReference(path), version, &rm); !errors.Is(err, errAbsent) {
				break
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if !covers(rm.Resource, f.server) {
		return nil, fmt.Errorf("it is about %q, and not about %q", clip(rm.Resource), clip(canonical(f.server)))
	}
	return &rm, nil
}

// wellKnownPaths are a well-known path before that of a URL, and alone.
func wellKnownPaths(wellKnown string, u *url.URL) []*url.URL {
	paths := []*url.URL{{Path: wellKnown}}
	if path := strings.TrimSuffix(u.Path, "/"); path != "" {
		escaped := strings.TrimSuffix(u.EscapedPath(), "/")
		paths = append([]*url.URL{{Path: wellKnown + path, RawPath: wellKnown + escaped}}, paths...)
	}
	return paths
}

// issuer reads the metadata of an authorization server.
func (f *fetcher) issuer(ctx context.Context, issuer, version string) (*place, error) {
	u, err := checkURL(issuer, f.server)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" {
		return nil, errors.New("an issuer has no query")
	}
	for _, at := range issuerPlaces(u) {
		var m issuerMetadata
		err := f.get(ctx, u.ResolveReference(at), version, &m)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if m.Issuer != issuer { // RFC 8414, 3.3: character by character
			return nil, fmt.Errorf("its metadata is that of %q", clip(m.Issuer))
		}
		if f.pages && !contains(m.Challenges, challengeMethod) {
			return nil, fmt.Errorf("its metadata does not say that it supports PKCE with %s", challengeMethod)
		}
		return f.place(m)
	}
	return nil, errors.New("it has no metadata at the well-known places")
}

// findLegacy finds the authorization server of 2025-03-26, which is the origin of the
// MCP server. That revision does not compare the issuer with anything; here it must be of
// that origin. It does not want the metadata to tell of PKCE either.
func (f *fetcher) findLegacy(ctx context.Context, version string) (*place, error) {
	var m issuerMetadata
	base := &url.URL{Scheme: f.server.Scheme, Host: f.server.Host}
	at := func(path string) string { return base.ResolveReference(&url.URL{Path: path}).String() }
	err := f.get(ctx, base.ResolveReference(&url.URL{Path: "/.well-known/oauth-authorization-server"}), version, &m)
	defaults := errors.Is(err, errAbsent)
	switch {
	case defaults:
		m = issuerMetadata{Issuer: canonical(base), AuthorizeURL: at("/authorize"), TokenURL: at("/token"), RegisterURL: at("/register")}
	case err != nil:
		return nil, fmt.Errorf("metadata of the server as an authorization server: %w", err)
	default:
		u, err := checkURL(m.Issuer, f.server)
		if err != nil || origin(u) != origin(base) {
			return nil, fmt.Errorf("metadata of the server as an authorization server: it is that of %q", clip(m.Issuer))
		}
		if f.pages && m.Challenges != nil && !contains(m.Challenges, challengeMethod) {
			return nil, fmt.Errorf("metadata of the server as an authorization server: PKCE with %s is not supported", challengeMethod)
		}
	}
	p, err := f.place(m)
	if err != nil {
		return nil, err
	}
	p.defaults, p.resource = defaults, canonical(f.server)
	return p, nil
}

// place checks the endpoints of an authorization server.
func (f *fetcher) place(m issuerMetadata) (*place, error) {
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
		u, err := checkURL(e.url, f.server)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		*e.into = u
	}
	return p, nil
}
