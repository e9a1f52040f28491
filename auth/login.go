package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// why is the reason for a new token.
type why struct {
	challenge
	version string // of the protocol, for metadata
	quietly bool   // refresh, but do not bother the user
}

const (
	loginTimeout   = 10 * time.Minute // for a whole login, with the user's part
	refreshTimeout = time.Minute
)

// obtain gets a token in place of old, which may be nil. It is called once at a time.
func (t *Transport) obtain(ctx context.Context, old *token, w why) (*token, error) {
	if w.errorCode != insufficientScope && old.refreshable() && (w.quietly || old.login || !old.unwanted()) {
		k, err := t.refresh(ctx, old)
		var refused *RefusedError
		switch {
		case err == nil:
			return k, nil
		case !errors.As(err, &refused) || refused.Status/100 != 4 || refused.Status == 408 || refused.Status == 429:
			// Nobody said that the token is bad, so it is kept.
			return nil, fmt.Errorf("refresh the token for %q: %w", clip(t.Server), err)
		}
		old.spent.Store(true)
	}
	if w.quietly {
		return old, nil // the server will say what it wants
	}
	k, err := t.login(ctx, old, w)
	if err != nil {
		return nil, fmt.Errorf("log in for %q: %w", clip(t.Server), err)
	}
	return k, nil
}

// refresh exchanges a refresh token, which may be good for one use alone: once begun, it
// is finished.
func (t *Transport) refresh(ctx context.Context, old *token) (*token, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.refresh}}
	return t.request(ctx, old.from, old.as, form, old)
}

// login asks the user.
//
// Specification: 2025-11-25, basic/authorization, Authorization Flow Steps; 2026-07-28,
// basic/authorization, Authorization Response Validation.
func (t *Transport) login(ctx context.Context, old *token, w why) (*token, error) {
	p, err := t.fetch.find(ctx, w.challenge, w.version)
	if err != nil {
		return nil, err
	}
	id, err := t.identify(ctx, p)
	if err != nil {
		return nil, err
	}
	want := w.scope
	if want == nil {
		want = p.scopes
	}
	if old != nil && old.from.issuer == p.issuer {
		want = union(old.asked, want)
	}
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
	page.RawQuery = q.Encode()
	back, err := t.Visit(ctx, page.String())
	if err != nil {
		return nil, fmt.Errorf("visit the page of %q: %w", clip(p.issuer), err)
	}
	code, err := t.readRedirect(back, p, state)
	if err != nil {
		return nil, fmt.Errorf("authorization server %q: %w", clip(p.issuer), err)
	}
	// The code is good for one use: what it gives is wanted even if nobody waits any more.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	k, err := t.request(ctx, p, id, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {t.RedirectURL},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("token endpoint %q: %w", clip(p.token.String()), err)
	}
	k.asked, k.login = want, true
	return k, nil
}

// readRedirect takes the code out of where the browser was sent back to. Nothing in it
// counts before it is known to be an answer to our question (state) of whom we asked (iss):
// RFC 9207, 2.4, compares character by character.
func (t *Transport) readRedirect(back *url.URL, p *place, state string) (code string, err error) {
	want, err := url.Parse(t.RedirectURL)
	if err != nil {
		return "", err
	}
	if back == nil || origin(back) != origin(want) || back.EscapedPath() != want.EscapedPath() {
		return "", errors.New("the browser did not come back to the redirect URL")
	}
	q, err := url.ParseQuery(back.RawQuery)
	if err != nil {
		return "", errors.New("the browser came back with a query that cannot be read")
	}
	for _, name := range []string{"state", "iss", "code", "error", "error_description"} {
		if len(q[name]) > 1 {
			return "", fmt.Errorf("the browser came back with more than one %s", name)
		}
	}
	switch iss, named := q.Get("iss"), q.Has("iss"); {
	case subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1:
		return "", errors.New("the browser came back with a state that is not ours; log in again")
	case named && iss != p.issuer:
		return "", fmt.Errorf("the browser came back from another authorization server, %q", clip(iss))
	case !named && p.meta.ResponsesNameIssuers:
		return "", errors.New("the browser came back without the issuer, which this authorization server always names")
	case q.Has("error"):
		return "", &RefusedError{Code: clip(q.Get("error")), Description: clip(q.Get("error_description"))}
	case q.Get("code") == "":
		return "", errors.New("the browser came back without a code")
	}
	return q.Get("code"), nil
}
