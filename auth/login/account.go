package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// The methods of this file are called for a person, and not because a server refused a request.

// Login logs the user in again, even if there is a token. It asks for the scopes; without any, for
// those that the server names. Unlike a login that a request causes, it ends with ctx. The error is
// [ErrNeeded] if there is neither a Grant nor Visit.
func (t *Transport) Login(ctx context.Context, scopes ...string) error {
	if err := t.ready(); err != nil {
		return err
	}
	if t.unattended() {
		return ErrNeeded
	}
	ctx, cancel := context.WithTimeoutCause(ctx, loginTimeout, fmt.Errorf("no login within %v", loginTimeout))
	defer cancel()
	w := why{version: oauth.Revision}
	var err error
	if w.challenge, err = t.probe(ctx); err != nil {
		return err
	}
	if len(scopes) > 0 {
		w.scope = scopes
	}
	if t.Store != nil {
		unlock, err := t.Store.Lock(ctx, "login "+t.storeName())
		if err != nil {
			return err
		}
		defer unlock()
	}
	old := t.current()
	k, err := t.login(ctx, nil, w)
	if err != nil {
		return fmt.Errorf("log in for %q: %w", text.Short(t.Server), err)
	}
	t.mu.Lock()
	t.token = k
	t.mu.Unlock()
	if t.Store == nil {
		return nil
	}
	return t.replace(context.WithoutCancel(ctx), old, k)
}

// ready prepares and checks the fields.
func (t *Transport) ready() error {
	t.once.Do(t.prepare)
	return t.fault
}

// probe sends a request without a token, to learn what the server asks for. It fails if the server
// accepts the request and names no authorization server.
func (t *Transport) probe(ctx context.Context) (challenge, error) {
	bounded, cancel := context.WithTimeout(ctx, oauth.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(bounded, http.MethodGet, t.Server, nil)
	if err != nil {
		return challenge{}, err
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := t.own.RoundTrip(req)
	if err != nil {
		return challenge{}, err
	}
	res.Body.Close()
	if res.StatusCode == http.StatusUnauthorized {
		c := readChallenge(res.Header)
		c.errorCode = ""
		return c, nil
	}
	if _, err := t.fetch.resource(bounded, "", oauth.Revision); errors.Is(err, oauth.ErrAbsent) {
		return challenge{}, fmt.Errorf("%q does not ask for a login: it answers HTTP %d and names no authorization server", text.Short(t.Server), res.StatusCode)
	}
	return challenge{}, nil
}

// Logins returns the logins at the server, the newest first: those in the Store, or else the one
// in memory.
func (t *Transport) Logins(ctx context.Context) ([]Record, error) {
	if err := t.ready(); err != nil {
		return nil, err
	}
	if t.Store != nil {
		return t.Store.Load(ctx, t.storeName())
	}
	if k := t.current(); k != nil {
		return []Record{*t.record(k)}, nil
	}
	return nil, nil
}

// Token returns a login with a valid token. It refreshes a token that is about to expire. It never
// asks the user. If only the user can help, the error is [ErrNeeded].
func (t *Transport) Token(ctx context.Context) (*Record, error) {
	if err := t.ready(); err != nil {
		return nil, err
	}
	k := t.current()
	if k == nil && t.Store != nil {
		if _, err := t.stored(ctx); err != nil { // why there is none
			return nil, err
		}
	}
	if k == nil {
		return nil, ErrNeeded
	}
	if k.unsaved.Load() || k.refreshable() && k.aged() {
		var err error
		if k, err = t.renew(ctx, k, why{version: oauth.Revision, quietly: true}); err != nil {
			return nil, err
		}
	}
	if k == nil || !k.expires.IsZero() && time.Now().After(k.expires) {
		return nil, ErrNeeded
	}
	return t.record(k), nil
}

// Logout revokes the tokens for the server where the authorization server offers that (RFC 7009),
// and deletes them in any case. It returns the logins that were deleted, without their tokens. The
// error says what could not be revoked or deleted.
func (t *Transport) Logout(ctx context.Context) (out []Record, err error) {
	if err := t.ready(); err != nil {
		return nil, err
	}
	if t.Store != nil {
		unlock, err := t.Store.Lock(ctx, "refresh "+t.storeName())
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	list, err := t.Logins(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.token = nil
	t.mu.Unlock()
	var faults []error
	for _, l := range list {
		if err := t.revoke(ctx, &l); err != nil {
			faults = append(faults, fmt.Errorf("revoke at %q: %w", text.Short(l.Issuer), err))
		}
		if t.Store != nil {
			if err := t.Store.Delete(context.WithoutCancel(ctx), l.Key); err != nil {
				faults = append(faults, err)
			}
		}
		if t.OnLogin != nil {
			t.OnLogin(Event{EventEnded, l.Issuer, l.Client, "logged out"})
		}
		l.Access, l.Refresh, l.ClientSecret = "", "", ""
		out = append(out, l)
	}
	return out, errors.Join(faults...)
}

// revoke tells the authorization server that the tokens of a login are not used any more.
//
// Specification: RFC 7009, 2.1.
func (t *Transport) revoke(ctx context.Context, l *Record) error {
	if l.RevokeURL == "" {
		return nil
	}
	k, err := t.tokenOf(l)
	if err != nil {
		return err
	}
	for _, one := range []struct{ hint, token string }{{"refresh_token", k.refresh}, {"access_token", k.access}} {
		if one.token == "" {
			continue
		}
		form := url.Values{"token": {one.token}, "token_type_hint": {one.hint}}
		_, err := t.ask(ctx, t.fetch.Fetcher, k.from.revoke, k.from, k.as, form)
		var refused *RefusedError
		if errors.As(err, &refused) && refused.Code == "unsupported_token_type" && one.token == k.access {
			continue // a signed token cannot be revoked, and expires soon (2.2.1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Settle waits until no refresh is under way. A program that ends during one loses the new refresh
// token.
func (t *Transport) Settle() {
	t.exchanging.Lock()
	defer t.exchanging.Unlock()
}
