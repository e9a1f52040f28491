package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// browser is the Grant of a user who agrees on a page: the authorization code grant.
//
// Specification: 2025-11-25, basic/authorization, Authorization Flow Steps; 2026-07-28,
// basic/authorization, Authorization Response Validation.
type browser struct{}

func (browser) check() error { return nil }

func (browser) get(ctx context.Context, t *Transport, p *place, want []string) (*token, error) {
	id, err := t.identify(ctx, p, clientMetadata{
		Redirects: []string{t.RedirectURL}, Responses: []string{"code"}, Grants: p.grantsToRegister(grantCode),
	})
	if err != nil {
		return nil, err
	}
	want = p.lasting(want)
	verifier, state := rand.Text()+rand.Text(), rand.Text() // 52 characters of 5 bits each, and 26
	page := *p.authorize
	q := page.Query()
	sum := sha256.Sum256([]byte(verifier))
	for name, v := range map[string]string{
		"response_type": "code", "client_id": id.ID, "redirect_uri": t.RedirectURL, "state": state, "resource": p.resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": challengeMethod,
	} {
		q.Set(name, v)
	}
	q.Del("scope")
	if len(want) > 0 {
		q.Set("scope", strings.Join(want, " "))
	}
	if slices.Contains(want, oauth.OfflineAccess) {
		q.Set("prompt", "consent") // without it, a refresh token may be denied silently (OpenID Connect Core 1.0, 11)
	}
	page.RawQuery = q.Encode()
	back, err := t.Visit(ctx, page.String())
	if err != nil {
		return nil, fmt.Errorf("visit its page: %w", err)
	}
	code, err := t.readRedirect(back, p, state)
	if err != nil {
		return nil, err
	}
	// The code is valid once, so the exchange is finished even if no caller waits any more.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	k, err := t.request(ctx, p, id, url.Values{
		"grant_type": {grantCode}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {t.RedirectURL},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("token endpoint %q: %w", text.Short(p.token.String()), err)
	}
	return k, nil
}

// readRedirect returns the code in the URL that the browser was sent back to. It checks state and
// iss before anything else in the URL; RFC 9207, 2.4, compares iss character by character.
func (t *Transport) readRedirect(back *url.URL, p *place, state string) (code string, err error) {
	want, err := url.Parse(t.RedirectURL)
	if err != nil {
		return "", err
	}
	if back == nil || oauth.Origin(back) != oauth.Origin(want) || back.EscapedPath() != want.EscapedPath() {
		return "", errors.New("the browser did not come back to the redirect URL")
	}
	q, err := url.ParseQuery(back.RawQuery)
	if err != nil {
		return "", errors.New("the browser came back with a query that cannot be parsed")
	}
	for _, name := range []string{"state", "iss", "code", "error", "error_description"} {
		if len(q[name]) > 1 {
			return "", fmt.Errorf("the browser came back with more than one %s", name)
		}
	}
	switch iss, named := q.Get("iss"), q.Has("iss"); {
	case subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1:
		return "", errors.New("the browser came back with an unknown state; log in again")
	case named && iss != p.issuer:
		return "", fmt.Errorf("the browser came back from another authorization server, %q", text.Short(iss))
	case !named && p.meta.ResponsesNameIssuers:
		return "", errors.New("the browser came back without the issuer, which this authorization server always names")
	case q.Has("error"):
		return "", &RefusedError{Code: text.Short(q.Get("error")), Description: text.Short(q.Get("error_description"))}
	case q.Get("code") == "":
		return "", errors.New("the browser came back without a code")
	}
	return q.Get("code"), nil
}
