package issuer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
)

const (
	providerTTL   = 15 * time.Minute
	providerRetry = 5 * time.Second
	maxExchanges  = 32      // requests to the identity provider at once
	maxClaims     = 8 << 10 // bytes of the claims of a person
)

// check reports what is wrong with the fields.
func (p *Provider) check() error {
	u, err := url.Parse(p.Issuer)
	if err == nil {
		u, err = oauth.CheckURL(p.Issuer, u)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the Provider's Issuer: %w", err)
	case u.RawQuery != "":
		return fmt.Errorf("the Provider's Issuer %q must not have a query", text.Short(p.Issuer))
	case p.ClientID == "":
		return errors.New("the Provider has no ClientID; register a client there, and write its id")
	}
	for _, scope := range p.Scopes {
		if !oauth.IsScope(scope) {
			return fmt.Errorf("the Provider's scope %q is not a scope (RFC 6749, 3.3)", text.Short(scope))
		}
	}
	return nil
}

// providerMetadata is the part of the identity provider's metadata that a login needs.
type providerMetadata struct {
	Authorize string   `json:"authorization_endpoint"`
	Token     string   `json:"token_endpoint"`
	UserInfo  string   `json:"userinfo_endpoint"`
	Keys      string   `json:"jwks_uri"`
	Methods   []string `json:"token_endpoint_auth_methods_supported"`
	Named     bool     `json:"authorization_response_iss_parameter_supported"`

	token, userInfo *url.URL
}

// provider is the identity provider, as a client of it.
type provider struct {
	Provider
	server  *Server
	site    *url.URL
	fetch   *oauth.Fetcher
	idToken *auth.JWT
	slots   chan struct{}

	mu     sync.Mutex
	meta   *providerMetadata // guarded by mu
	fault  error             // guarded by mu
	until  time.Time         // when to look again; guarded by mu
	flight chan struct{}     // closed when the look in progress is over; guarded by mu
}

func newProvider(s *Server) *provider {
	site, _ := url.Parse(s.Provider.Issuer) // it was checked
	return &provider{
		Provider: s.Provider, server: s, site: site, fetch: oauth.NewFetcher(site, s.Base), slots: make(chan struct{}, maxExchanges),
		idToken: &auth.JWT{Issuer: s.Provider.Issuer, Audience: []string{s.Provider.ClientID}, Base: s.Base, Logger: s.Logger},
	}
}

func (p *provider) host() string { return p.site.Host }

// scope returns the scopes to ask for.
func (p *provider) scope() string {
	scopes := p.Scopes
	if scopes == nil {
		scopes = []string{"profile", "email"}
	}
	return strings.Join(oauth.Union([]string{"openid"}, scopes), " ")
}

// metadata returns the metadata of the identity provider. It is read every 15 minutes; the earlier
// one stays in use while the identity provider cannot be reached.
func (p *provider) metadata(ctx context.Context) (*providerMetadata, error) {
	p.mu.Lock()
	if p.flight == nil && time.Now().After(p.until) {
		p.look()
	}
	meta, flight := p.meta, p.flight
	p.mu.Unlock()
	if meta != nil {
		return meta, nil
	}
	if flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.meta != nil {
		return p.meta, nil
	}
	return nil, p.fault
}

// look starts to read the metadata, with mu held. All requests that wait share it.
func (p *provider) look() {
	done := make(chan struct{})
	p.flight = done
	go func() {
		defer close(done)
		ctx, stop := context.WithTimeout(context.Background(), oauth.Timeout)
		defer stop()
		meta, err := p.read(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.flight = nil
		if p.fault = err; err != nil {
			p.server.failed("metadata of the identity provider not read", err)
			p.until = time.Now().Add(providerRetry)
			return
		}
		p.meta, p.until = meta, time.Now().Add(providerTTL)
	}()
}

func (p *provider) read(ctx context.Context) (*providerMetadata, error) {
	m := new(providerMetadata)
	if err := p.fetch.Issuer(ctx, p.Issuer, oauth.Revision, m); err != nil {
		return nil, fmt.Errorf("identity provider %q: %w", text.Short(p.Issuer), err)
	}
	for _, e := range []struct {
		name, url string
		into      **url.URL
	}{
		{"authorization_endpoint", m.Authorize, new(*url.URL)}, {"token_endpoint", m.Token, &m.token},
		{"jwks_uri", m.Keys, new(*url.URL)}, {"userinfo_endpoint", m.UserInfo, &m.userInfo},
	} {
		if e.url == "" && e.into == &m.userInfo {
			continue
		}
		u, err := oauth.CheckURL(e.url, p.site)
		if err != nil {
			return nil, fmt.Errorf("identity provider %q: its %s: %w", text.Short(p.Issuer), e.name, err)
		}
		*e.into = u
	}
	return m, nil
}

// person is a person who has logged in.
type person struct {
	Subject string         `json:"s"`
	Claims  map[string]any `json:"c,omitempty"`
	Name    string         `json:"-"` // preferred_username or email, for operators
}

// person exchanges a code for an ID token and returns whom it names. The tokens are dropped.
func (p *provider) person(ctx context.Context, m *providerMetadata, code string, l *login) (*person, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the identity provider: %w", ctx.Err())
	}
	form := url.Values{"grant_type": {grantCode}, "code": {code}, "redirect_uri": {p.server.CallbackURL()}, "code_verifier": {l.Verifier}}
	header := oauth.FormHeader()
	switch secret := string(p.Secret); {
	case secret == "":
		form.Set("client_id", p.ClientID)
	case len(m.Methods) == 0 || slices.Contains(m.Methods, methodBasic) || !slices.Contains(m.Methods, methodPost):
		oauth.SetBasic(header, p.ClientID, secret)
	default:
		form.Set("client_id", p.ClientID)
		form.Set("client_secret", secret)
	}
	answer, err := p.fetch.Post(ctx, m.token, header, []byte(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("token endpoint of the identity provider: %w", err)
	}
	if answer.Status != http.StatusOK {
		code, description := answer.Refusal()
		return nil, fmt.Errorf("token endpoint of the identity provider: HTTP %d %q (%q)", answer.Status, code, description)
	}
	var tokens struct {
		ID     string `json:"id_token"`
		Access string `json:"access_token"`
	}
	if jsonx.Unmarshal(answer.Body, &tokens) != nil || tokens.ID == "" { // its text may hold a token
		return nil, errors.New("token endpoint of the identity provider: the answer has no id_token; does the client have the scope openid?")
	}
	claims, err := p.verify(ctx, tokens.ID, l.Nonce)
	if err != nil {
		return nil, fmt.Errorf("ID token of the identity provider: %w", err)
	}
	if m.userInfo != nil && tokens.Access != "" && p.lacking(claims) {
		if claims, err = p.more(ctx, m, tokens.Access, claims); err != nil {
			return nil, fmt.Errorf("userinfo of the identity provider: %w", err)
		}
	}
	return p.server.admit(claims)
}

// verify checks an ID token (OpenID Connect Core 1.0, 3.1.3.7), and returns its claims.
func (p *provider) verify(ctx context.Context, token, nonce string) (map[string]any, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.server.URL, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	who, err := p.idToken.Verify(r)
	if err != nil {
		return nil, err
	}
	c := who.Claims
	azp, named := c["azp"]
	audiences, _ := c["aud"].([]any)
	switch {
	case c["nonce"] != nonce:
		return nil, errors.New("its nonce is not that of this login")
	case named && azp != p.ClientID, !named && len(audiences) > 1:
		return nil, fmt.Errorf("it was made for another client, %q", text.Short(fmt.Sprint(azp)))
	case who.Subject == "":
		return nil, errors.New("it has no sub")
	}
	return c, nil
}

// lacking reports whether claims that the configuration names are not in an ID token. Some identity
// providers have them at the userinfo endpoint alone.
func (p *provider) lacking(c map[string]any) bool {
	for name := range p.server.Require {
		if c[name] == nil {
			return true
		}
	}
	if p.server.Claims == nil {
		return c["name"] == nil && c["email"] == nil && c["preferred_username"] == nil
	}
	return slices.ContainsFunc(p.server.Claims, func(name string) bool { return c[name] == nil })
}

// more adds the claims of the userinfo endpoint (OpenID Connect Core 1.0, 5.3).
func (p *provider) more(ctx context.Context, m *providerMetadata, token string, c map[string]any) (map[string]any, error) {
	var info map[string]any
	if err := p.fetch.GetWith(ctx, m.userInfo, token, &info); err != nil {
		return nil, err
	}
	if info["sub"] != c["sub"] {
		return nil, errors.New("it is about another person")
	}
	all := maps.Clone(info)
	maps.Copy(all, c) // what is signed counts more
	return all, nil
}

// maxSubject bounds a subject and a name, in bytes (OpenID Connect Core 1.0, 2).
const maxSubject = 255

// shownClaims are the claims that logs, lists and policies show as text.
var shownClaims = []string{"sub", "name", "email", "preferred_username"}

// admit checks the claims, and picks those to copy.
func (s *Server) admit(claims map[string]any) (*person, error) {
	for _, name := range shownClaims {
		if v, _ := claims[name].(string); strings.ContainsFunc(v, unseen) {
			return nil, refuse(accessDenied, fmt.Sprintf("this server does not admit the person: the claim %s has control characters; correct it at the identity provider", name))
		}
	}
	if verified, ok := claims["email_verified"]; ok && verified != true && verified != "true" {
		claims = maps.Clone(claims)
		delete(claims, "email")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Require)) {
		if !includes(claims[name], s.Require[name]) {
			return nil, refuse(accessDenied, fmt.Sprintf("this server does not admit the person: the claim %s has none of the required values", name))
		}
	}
	who := &person{Claims: map[string]any{}}
	who.Subject, _ = claims["sub"].(string)
	if len(who.Subject) > maxSubject {
		return nil, refuse(serverError, "the claim sub of the person has more than 255 bytes")
	}
	for _, name := range []string{"preferred_username", "email"} {
		if v, _ := claims[name].(string); who.Name == "" && len(v) <= maxSubject {
			who.Name = v
		}
	}
	for _, name := range s.claims {
		if v, ok := claims[name]; ok {
			who.Claims[name] = v
		}
	}
	raw, err := jsonx.Marshal(who)
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxClaims:
		return nil, refuse(serverError, "the claims of the person have more than 8 KiB; let the identity provider send fewer groups, or copy fewer claims")
	}
	return who, nil
}

// unseen reports whether a character is a control character, breaks a line, or changes the direction of
// the text around it.
func unseen(r rune) bool {
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// includes reports whether a claim, or an element of it, is one of some values, in which * stands for
// any text.
func includes(claim any, values []string) bool {
	switch claim := claim.(type) {
	case nil:
		return false
	case []any:
		return slices.ContainsFunc(claim, func(one any) bool { return includes(one, values) })
	}
	text := fmt.Sprint(claim)
	return slices.ContainsFunc(values, func(v string) bool { return wildcard.Match(v, text) })
}
