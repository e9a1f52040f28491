package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// why is the reason for a new token.
type why struct {
	challenge
	version string // of the protocol, for metadata
	quietly bool   // refresh only, and do not ask the user
}

const (
	loginTimeout   = 10 * time.Minute // for a whole login, with the user's part
	refreshTimeout = time.Minute
)

// obtain gets a token in place of old, which may be nil. One call runs at a time.
func (t *Transport) obtain(ctx context.Context, old *token, w why) (*token, error) {
	refresh, login := t.refreshIfUseful, t.login
	if t.Store != nil && (old == nil || !old.from.bound) {
		refresh, login = t.refreshStored, t.loginStored
	}
	spent := old != nil && old.spent.Load()
	k, err := refresh(ctx, old, w)
	t.lost(old, spent)
	switch {
	case err != nil:
		return k, fmt.Errorf("refresh the token for %q: %w", text.Short(t.Server), err)
	case k != nil:
		if old == nil || spent {
			t.tell(EventDone, k, "")
		}
		return k, nil
	case w.quietly:
		return old, nil // the server will say what is missing
	case t.unattended():
		return nil, ErrNeeded
	}
	k, err = login(ctx, old, w)
	if err != nil {
		t.denied(err)
		return k, fmt.Errorf("log in for %q: %w", text.Short(t.Server), err)
	}
	t.tell(EventDone, k, "")
	return k, nil
}

// refreshIfUseful refreshes a token if that can help. It returns nil without error if the user has
// to log in.
func (t *Transport) refreshIfUseful(ctx context.Context, old *token, w why) (*token, error) {
	if w.errorCode == oauth.InsufficientScope || !old.refreshable() || !w.quietly && !old.login && old.unwanted() {
		return nil, nil
	}
	k, err := t.refresh(ctx, old)
	var refused *RefusedError
	if errors.As(err, &refused) && !refused.transient() {
		old.spent.Store(true)
		return nil, nil
	}
	return k, err // with an error the refresh token was not refused, so it is kept
}

// refresh exchanges a refresh token. The token may be valid once, so an exchange that has begun is
// finished.
func (t *Transport) refresh(ctx context.Context, old *token) (*token, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	form := url.Values{"grant_type": {grantRefresh}, "refresh_token": {old.refresh}}
	return t.request(ctx, old.from, old.as, form, old)
}

// login finds the authorization server and logs in there.
//
// Specification: 2025-11-25, basic/authorization, Scope Selection Strategy.
func (t *Transport) login(ctx context.Context, old *token, w why) (*token, error) {
	p, err := t.fetch.find(ctx, w.challenge, w.version)
	if err != nil {
		return nil, err
	}
	p.bound = p.bound || t.DPoP || w.bound
	if a := p.meta.ProofAlgorithms; p.bound && a != nil && !slices.Contains(a, string(algorithmDPoP)) {
		return nil, fmt.Errorf("authorization server %q: it does not accept proofs signed with %s, but tokens must be bound to a key", text.Short(p.issuer), algorithmDPoP)
	}
	want := w.scope
	if want == nil {
		want = p.scopes
	}
	if old != nil && old.from.issuer == p.issuer {
		want = oauth.Union(old.asked, want)
	}
	grant := t.Grant
	if grant == nil {
		grant = browser{}
	}
	k, err := grant.get(ctx, t, p, want)
	if err != nil {
		return nil, fmt.Errorf("authorization server %q: %w", text.Short(p.issuer), err)
	}
	k.asked, k.login = want, true
	return k, nil
}
