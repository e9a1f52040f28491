package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Credentials identify a client at an authorization server. They never print their secret.
type Credentials struct {
	ID     string
	Secret string     // empty: a public client, if there is no Key either
	Key    *ClientKey // signs instead of sending the Secret; nil: there is none
}

func (c Credentials) String() string       { return "client " + c.ID }
func (c Credentials) GoString() string     { return c.String() }
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Methods of a client to authenticate at a token endpoint (RFC 7591, 2).
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt" // OpenID Connect Core 1.0, 9

	assertionKind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" // RFC 7523, 2.2
)

// identity is this client as one authorization server knows it.
type identity struct {
	Credentials
	method  string
	expires time.Time // of the secret; zero: never
}

// given returns the identity that the program has set, by Registered or DocumentURL, or nil if
// there is none.
func (t *Transport) given(ctx context.Context, p *place) (*identity, error) {
	if t.Registered != nil {
		c, err := t.Registered(ctx, t.Server, p.issuer)
		if err != nil {
			return nil, fmt.Errorf("credentials for %q: %w", text.Short(p.issuer), err)
		}
		if c != nil {
			return &identity{Credentials: *c, method: p.methodFor(*c)}, nil
		}
	}
	if t.DocumentURL != "" && p.meta.DocumentsAreClients {
		return &identity{Credentials: Credentials{ID: t.DocumentURL}, method: methodNone}, nil
	}
	return nil, nil
}

// ErrNotRegistered says that an authorization server does not register clients on request. A
// person has to register one there, and [Transport.Registered] to return its credentials.
var ErrNotRegistered = errors.New("login: the authorization server has no client registration; register a client there by hand")

// identify returns the identity of this client at an authorization server. If there is none, it
// registers the client with metadata m.
//
// Specification: 2025-11-25, basic/authorization, Client Registration Approaches.
func (t *Transport) identify(ctx context.Context, p *place, m clientMetadata) (*identity, error) {
	if id, err := t.given(ctx, p); id != nil || err != nil {
		return id, err
	}
	t.mu.Lock()
	known := t.identities[p.issuer]
	t.mu.Unlock()
	if known != nil && (known.expires.IsZero() || time.Now().Before(known.expires)) {
		return known, nil
	}
	if p.register == nil {
		return nil, ErrNotRegistered
	}
	id, err := t.register(ctx, p, m)
	if err != nil {
		return nil, fmt.Errorf("register at %q: %w", text.Short(p.register.String()), err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.identities == nil {
		t.identities = map[string]*identity{}
	}
	t.identities[p.issuer] = id
	return id, nil
}

// forget drops a registration that its authorization server does not know any more.
func (t *Transport) forget(issuer string, id *identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.identities[issuer] == id {
		delete(t.identities, issuer)
	}
}

// methodFor picks the method to authenticate with some credentials.
func (p *place) methodFor(c Credentials) string {
	offered := p.meta.TokenMethods
	switch {
	case c.Key != nil:
		return methodKey
	case c.Secret == "":
		return methodNone
	case len(offered) == 0 || slices.Contains(offered, methodBasic):
		return methodBasic // RFC 8414, 2: the default
	case slices.Contains(offered, methodPost):
		return methodPost
	case slices.Contains(offered, methodNone):
		return methodNone
	}
	return methodBasic // OAuth 2.1, 2.4.1: a server that issues secrets supports it
}

// methodToRegister picks the method of a client that is about to register.
func (p *place) methodToRegister() string {
	offered := p.meta.TokenMethods
	switch {
	case p.defaults || slices.Contains(offered, methodNone):
		return methodNone
	case len(offered) > 0 && !slices.Contains(offered, methodBasic) && slices.Contains(offered, methodPost):
		return methodPost
	}
	return methodBasic
}

// clientMetadata is what a registration says about a client (RFC 7591, 2).
type clientMetadata struct {
	Name      string   `json:"client_name"`
	Redirects []string `json:"redirect_uris,omitempty"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
	Method    string   `json:"token_endpoint_auth_method"`
	Kind      string   `json:"application_type"`
}

// grantsToRegister returns a grant, and the refresh grant if the authorization server has it.
func (p *place) grantsToRegister(grant string) []string {
	if len(p.meta.Grants) == 0 || slices.Contains(p.meta.Grants, grantRefresh) {
		return []string{grant, grantRefresh}
	}
	return []string{grant}
}

// register registers this client (RFC 7591, 3).
func (t *Transport) register(ctx context.Context, p *place, m clientMetadata) (*identity, error) {
	m.Kind = "native"
	if len(m.Redirects) > 0 && !strings.HasPrefix(m.Redirects[0], "http:") {
		m.Kind = "web"
	}
	m.Name = t.ClientName
	if m.Name == "" {
		m.Name = "patchbay"
	}
	method := p.methodToRegister()
	m.Method = method
	body, err := jsonx.Marshal(m)
	if err != nil {
		return nil, err
	}
	answer, err := t.fetch.Post(ctx, p.register, http.Header{"Content-Type": {"application/json"}}, body)
	if err != nil {
		return nil, err
	}
	if answer.Status/100 != 2 {
		return nil, refusal(answer)
	}
	var r struct {
		ID      string          `json:"client_id"`
		Secret  string          `json:"client_secret"`
		Expires json.RawMessage `json:"client_secret_expires_at"`
		Method  string          `json:"token_endpoint_auth_method"`
	}
	if jsonx.Unmarshal(answer.Body, &r) != nil || r.ID == "" { // its text may hold the secret
		return nil, errors.New("the answer has no client_id")
	}
	id := &identity{Credentials: Credentials{ID: r.ID, Secret: r.Secret}, method: method}
	if r.Method != "" {
		id.method = r.Method
	}
	switch {
	case id.method == methodNone:
		id.Secret = ""
	case id.method != methodBasic && id.method != methodPost:
		return nil, fmt.Errorf("it requires client authentication by %q, which this client does not support", text.Short(r.Method))
	case r.Secret == "":
		id.method = methodNone
	}
	if s := seconds(r.Expires); s > 0 && id.Secret != "" {
		id.expires = time.Unix(int64(s), 0)
	}
	return id, nil
}

// RefusedError is the answer from an authorization server that refuses (RFC 6749, 4.1.2.1 and 5.2;
// RFC 7591, 3.2.2).
type RefusedError struct {
	Code        string // such as "access_denied" if the user refused
	Description string // for people, written by the authorization server; some 200 bytes at most
	Status      int    // of HTTP; zero for what came through the browser
}

func (e *RefusedError) Error() string {
	s := fmt.Sprintf("refused: %q", e.Code)
	if e.Code == "" {
		s = fmt.Sprintf("refused: HTTP %d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Description != "" {
		s += fmt.Sprintf(" (%q)", e.Description)
	}
	return s
}

// transient reports whether the same request may succeed later.
func (e *RefusedError) transient() bool {
	return e.Status/100 != 4 || e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests
}

func refusal(r *oauth.Reply) *RefusedError {
	code, description := r.Refusal()
	return &RefusedError{code, description, r.Status}
}

// checkDocumentURL reports whether a URL can be a client id. Specification: 2025-11-25,
// basic/authorization, Client ID Metadata Documents.
func checkDocumentURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.Host == "" || len(u.Path) < 2 || u.User != nil || u.Fragment != "" {
		return fmt.Errorf("DocumentURL %q is not an https URL with a path", text.Short(raw))
	}
	return nil
}
