package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Enterprise is the [Grant] for a company that decides at its identity provider who may use which
// server. The user's ID token is exchanged there for an assertion (ID-JAG), and the assertion at
// the server's authorization server for an access token. [Transport.Registered] or
// [Transport.DocumentURL] names the client at the authorization server.
//
// Specification: extensions/auth, enterprise-managed-authorization (stable), 4 and 5.
type Enterprise struct {
	// Issuer is the identity provider, whose metadata names the token endpoint. It is trusted, so
	// its address may be further inside the network than the server's.
	Issuer string

	// Client are the credentials of this program at the identity provider.
	Client Credentials

	// Subject returns the token that the identity provider issued when the user logged in. It is
	// called for each access token.
	Subject func(ctx context.Context) (string, error)

	// SubjectType is the type of the Subject (RFC 8693, 3). Empty: an OpenID Connect ID token.
	SubjectType string
}

const (
	typeIDToken = "urn:ietf:params:oauth:token-type:id_token"
	typeIDJAG   = "urn:ietf:params:oauth:token-type:id-jag"

	profileIDJAG = "urn:ietf:params:oauth:grant-profile:id-jag"
)

func (e *Enterprise) check() error {
	u, err := url.Parse(e.Issuer)
	if err == nil {
		_, err = oauth.CheckURL(e.Issuer, u)
	}
	switch {
	case err != nil:
		return fmt.Errorf("Enterprise: Issuer: %w", err)
	case e.Client.ID == "":
		return errors.New("Enterprise: Client has no ID")
	case e.Subject == nil:
		return errors.New("Enterprise: Subject is not set")
	}
	return nil
}

func (e *Enterprise) get(ctx context.Context, t *Transport, p *place, want []string) (*token, error) {
	if p.meta.Profiles != nil && !slices.Contains(p.meta.Profiles, profileIDJAG) {
		return nil, errors.New("it does not accept assertions of identity providers (authorization_grant_profiles_supported)")
	}
	id, err := t.given(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case id == nil:
		return nil, fmt.Errorf("the function Registered returns no client for %q", text.Short(p.issuer))
	}
	assertion, err := e.exchange(ctx, t, p, want)
	if err != nil {
		return nil, fmt.Errorf("identity provider %q: %w", text.Short(e.Issuer), err)
	}
	form := grantForm(grantJWT, want)
	form.Set("assertion", assertion)
	k, err := t.request(ctx, p, id, form, nil)
	if err != nil {
		return nil, fmt.Errorf("token endpoint %q: %w", text.Short(p.token.String()), err)
	}
	return k, nil
}

// exchange gets the assertion for an authorization server from the identity provider.
func (e *Enterprise) exchange(ctx context.Context, t *Transport, p *place, want []string) (string, error) {
	u, err := url.Parse(e.Issuer)
	if err != nil {
		return "", err
	}
	f := &finder{Fetcher: oauth.NewFetcher(u, t.fetchBase(u, t.own))}
	idp, err := f.placeOf(ctx, e.Issuer, oauth.Revision)
	if err != nil {
		return "", err
	}
	subject, err := e.Subject(ctx)
	if err != nil {
		return "", fmt.Errorf("the user's login: %w", err)
	}
	form := grantForm(grantExchange, want)
	for name, v := range map[string]string{
		"requested_token_type": typeIDJAG, "audience": p.issuer, "resource": p.resource,
		"subject_token": subject, "subject_token_type": e.SubjectType,
	} {
		form.Set(name, v)
	}
	if e.SubjectType == "" {
		form.Set("subject_token_type", typeIDToken)
	}
	answer, err := t.ask(ctx, f.Fetcher, idp.token, idp, &identity{Credentials: e.Client, method: idp.methodFor(e.Client)}, form)
	if err != nil {
		return "", err
	}
	var r struct {
		Token string `json:"access_token"`
		Kind  string `json:"issued_token_type"`
		Type  string `json:"token_type"`
	}
	if jsonx.Unmarshal(answer, &r) != nil || !oauth.IsHeaderToken(r.Token) { // its text may hold the assertion
		return "", errors.New("the answer has no assertion")
	}
	if r.Kind != typeIDJAG || !strings.EqualFold(r.Type, "N_A") {
		return "", fmt.Errorf("the answer has type %q (%q) and is not an ID-JAG", text.Short(r.Kind), text.Short(r.Type))
	}
	return r.Token, nil
}
