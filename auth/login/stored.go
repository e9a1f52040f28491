package login

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// This file is about tokens that other processes use too. The store is read under a lock before a
// token is refreshed or a login begins, and a new token is stored before it is used.
//
// Each server has two locks. The lock of refreshing is held for one exchange. The lock of logging in
// is held while the user logs in, and others can refresh meanwhile.

// ErrNeeded says that there is no valid token, and that only the user can get one.
var ErrNeeded = errors.New("login: not logged in")

// unattended reports whether the Transport has neither a user nor another way to tokens.
func (t *Transport) unattended() bool { return t.Grant == nil && t.Visit == nil }

func (t *Transport) storeName() string { return oauth.Canonical(t.server) }

// record returns a token as it is stored.
func (t *Transport) record(k *token) *Record {
	r := &Record{
		Key:      Key{t.storeName(), k.from.issuer, k.as.ID},
		Resource: k.from.resource, TokenURL: k.from.token.String(),
		ClientSecret: Secret(k.as.Secret), ClientMethod: k.as.method,
		Access: Secret(k.access), Asked: k.asked, Granted: k.granted, Got: k.got, Expires: k.expires,
	}
	if k.from.revoke != nil {
		r.RevokeURL = k.from.revoke.String()
	}
	if !k.spent.Load() {
		r.Refresh = Secret(k.refresh)
	}
	return r
}

// tokenOf returns a stored login as a token.
func (t *Transport) tokenOf(r *Record) (*token, error) {
	p := &place{issuer: r.Issuer, resource: r.Resource}
	var err error
	if p.token, err = oauth.CheckURL(r.TokenURL, t.server); err != nil {
		return nil, fmt.Errorf("stored login: %w", err)
	}
	if r.RevokeURL != "" {
		if p.revoke, err = oauth.CheckURL(r.RevokeURL, t.server); err != nil {
			return nil, fmt.Errorf("stored login: %w", err)
		}
	}
	id := &identity{Credentials: Credentials{ID: r.Client, Secret: string(r.ClientSecret)}, method: r.ClientMethod}
	k := &token{access: string(r.Access), refresh: string(r.Refresh), from: p, as: id, asked: r.Asked, granted: r.Granted, got: r.Got, expires: r.Expires, adopted: true}
	if !r.Expires.IsZero() {
		k.stale = staleFrom(r.Got, r.Expires)
	}
	return k, nil
}

// stored returns the token of this client in the store, or nil if there is none.
func (t *Transport) stored(ctx context.Context) (*token, error) {
	logins, err := t.Store.Load(ctx, t.storeName())
	if err != nil {
		return nil, err
	}
	for i := range logins {
		k, err := t.tokenOf(&logins[i])
		if err != nil || t.Registered == nil {
			return k, err
		}
		c, err := t.Registered(ctx, t.Server, k.from.issuer)
		switch {
		case err != nil:
			return nil, fmt.Errorf("credentials for %q: %w", text.Short(k.from.issuer), err)
		case c != nil && c.ID != k.as.ID:
			continue // the login of another client
		case c != nil:
			k.as.Credentials = *c
		}
		return k, nil
	}
	return nil, nil
}

// load takes over the token from the store. It returns no error, because many servers need no
// token, and the next use of the store fails in the same way.
func (t *Transport) load() {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	k, err := t.stored(ctx)
	if err != nil || k == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == nil {
		t.token = k
	}
}

// save stores the newest token. If that fails, the token is marked as unsaved.
func (t *Transport) save(ctx context.Context, k *token) error {
	if k.from.bound {
		return nil // to a key that this process alone has (DPoP)
	}
	err := t.Store.Save(ctx, t.record(k))
	k.unsaved.Store(err != nil)
	if err != nil {
		return fmt.Errorf("store the new token: %w", err)
	}
	return nil
}

// refreshStored is refreshIfUseful with a store. Another process may have refreshed the token
// already.
func (t *Transport) refreshStored(ctx context.Context, old *token, w why) (*token, error) {
	unlock, err := t.Store.Lock(ctx, "refresh "+t.storeName())
	if err != nil {
		return nil, err
	}
	defer unlock()
	if old != nil && old.unsaved.Load() {
		return old, t.save(context.WithoutCancel(ctx), old)
	}
	kept, err := t.stored(ctx)
	switch {
	case err != nil:
		return nil, err
	case kept == nil && old != nil: // logged out meanwhile
		old.spent.Store(true)
		return nil, nil
	case kept == nil:
		return nil, nil
	case old == nil || kept.access != old.access:
		if !kept.aged() && answers(kept, w) {
			return kept, nil
		}
		old = kept
	case kept.refresh != old.refresh:
		old = kept
	}
	if w.errorCode == oauth.InsufficientScope || !old.refreshable() || !w.quietly && !old.login && old.unwanted() {
		return nil, nil
	}
	return t.spend(ctx, old)
}

// answers reports whether a token from another process has the scopes that are needed.
func answers(kept *token, w why) bool {
	return w.errorCode != oauth.InsufficientScope || len(oauth.Union(kept.asked, w.scope)) == len(kept.asked)
}

// spend refreshes the stored token, with the lock held. It returns nil without error if the
// refresh token is not valid any more.
func (t *Transport) spend(ctx context.Context, old *token) (*token, error) {
	t.exchanging.RLock()
	defer t.exchanging.RUnlock()
	ctx = context.WithoutCancel(ctx) // the successor of a spent token must be stored
	begun := t.record(old)
	begun.Refreshing = time.Now()
	if err := t.Store.Save(ctx, begun); err != nil {
		return nil, fmt.Errorf("nothing was sent, as the new token could not be stored: %w", err)
	}
	k, err := t.refresh(ctx, old)
	var refused *RefusedError
	switch {
	case err == nil:
		return k, t.save(ctx, k)
	case !errors.As(err, &refused) || refused.transient():
		return nil, err
	case refused.Code != "invalid_grant":
		old.spent.Store(true)
		return nil, nil
	}
	// Another process may have refreshed without the lock, if the folder is on a network drive.
	kept, err := t.stored(ctx)
	switch {
	case err != nil:
		return nil, err
	case kept != nil && kept.access != old.access:
		return kept, nil
	}
	old.spent.Store(true)
	return nil, t.Store.Save(ctx, t.record(old)) // without the refresh token, so that it is not tried again
}

// loginStored is login with a store: one process asks the user, and the others wait for it.
func (t *Transport) loginStored(ctx context.Context, old *token, w why) (*token, error) {
	unlock, err := t.Store.Lock(ctx, "login "+t.storeName())
	if err != nil {
		return nil, err
	}
	defer unlock()
	kept, err := t.stored(ctx)
	switch {
	case err != nil:
		return nil, err
	case kept == nil:
	case old == nil || kept.access != old.access:
		if !kept.aged() && answers(kept, w) {
			return kept, nil
		}
		old = kept
	}
	k, err := t.login(ctx, old, w)
	if err != nil {
		return nil, err
	}
	return k, t.replace(context.WithoutCancel(ctx), old, k)
}

// replace stores a new login in place of an old one, which may be nil.
func (t *Transport) replace(ctx context.Context, old, k *token) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	unlock, err := t.Store.Lock(ctx, "refresh "+t.storeName()) // a refresh in between would come after us
	if err != nil {
		k.unsaved.Store(true)
		return err
	}
	defer unlock()
	if err := t.save(ctx, k); err != nil {
		return err
	}
	if old != nil && old.from.issuer == k.from.issuer && old.as.ID != k.as.ID {
		return t.Store.Delete(ctx, t.record(old).Key) // of a registration that is not used any more
	}
	return nil
}
