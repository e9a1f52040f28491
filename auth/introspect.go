package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Introspection is a [Verifier] of the access tokens of one issuer, which it asks about each token
// (RFC 7662). It takes every Bearer token that no verifier before it knew, so it belongs at the
// end. URL or Issuer is required.
//
// The answer must say that the token is active, and name its audience (aud). The answer is kept for
// TTL, a refusal for 10 seconds; a revoked token stays valid that long. At most one question runs
// for each token, and 32 in all. A request beyond that, or while the issuer cannot be reached, gets
// 503.
//
// No field may change after the first use.
type Introspection struct {
	// URL is the introspection endpoint: https, or http on loopback. Empty: the one in the
	// metadata of the Issuer.
	URL string

	// Issuer is the authorization server. An answer that names another one is refused.
	Issuer string

	// ClientID and ClientSecret are the credentials of this server at the issuer, by HTTP Basic.
	// Without a ClientID none are sent; most issuers refuse such questions.
	ClientID     string
	ClientSecret Secret

	// Audience are the audiences that tokens may be for. Nil: the Resource of the Guard.
	Audience []string

	// Clients are as those of [JWT].
	Clients []string

	// TTL is how long an answer is kept, at most until the token expires. Zero: 30 seconds,
	// negative: it is used once.
	TTL time.Duration

	// ScopesClaim and RolesClaim are as those of [JWT].
	ScopesClaim string
	RolesClaim  string

	// Base sends the requests to the issuer, and decides which addresses may be connected to. Nil:
	// connections of its own, whose addresses are checked.
	Base http.RoundTripper

	once    sync.Once
	fault   error // of the fields
	fetch   *oauth.Fetcher
	known   *cache[introspected]
	refused *cache[time.Time] // until when; apart, so that refused tokens do not displace valid ones
	slots   chan struct{}

	mu       sync.Mutex
	endpoint *url.URL                          // nil: not known yet; guarded by mu
	flights  map[[sha256.Size]byte]*inspecting // guarded by mu
}

// introspected is the answer from an issuer about a token.
type introspected struct {
	knownToken
	until time.Time
}

// inspecting is one question to an issuer. Several requests may wait for it. It has a goroutine,
// which ends within introspectTimeout.
type inspecting struct {
	done chan struct{}
	k    introspected // after done
	err  error        // after done
}

const (
	maxInspecting     = 32
	refusedTTL        = 10 * time.Second
	introspectTimeout = 10 * time.Second
)

func (i *Introspection) prepare() {
	i.known, i.refused = newCache[introspected](maxKnown), newCache[time.Time](maxKnown)
	i.slots, i.flights = make(chan struct{}, maxInspecting), map[[sha256.Size]byte]*inspecting{}
	from := i.Issuer
	if from == "" {
		from = i.URL
	}
	var err error
	if i.fetch, err = issuerFetcher(from, i.Base); err != nil {
		i.fault = fmt.Errorf("Introspection: %w", err)
		return
	}
	if i.URL != "" {
		if i.endpoint, err = oauth.CheckURL(i.URL, i.fetch.Server); err != nil {
			i.fault = fmt.Errorf("Introspection: URL: %w", err)
		}
	}
}

func (i *Introspection) check(resource string) error {
	i.once.Do(i.prepare)
	if i.fault == nil && i.Audience == nil && resource == "" {
		return errors.New("Introspection: neither Audience nor the Guard's Resource is set, so tokens for any server would be accepted")
	}
	return i.fault
}

func (i *Introspection) issuer() string { return i.Issuer }

// Verify implements [Verifier]. Outside of a Guard with a Resource it needs an Audience.
func (i *Introspection) Verify(r *http.Request) (*Principal, error) { return i.verifyFor(r, "") }

func (i *Introspection) verifyFor(r *http.Request, resource string) (*Principal, error) {
	if err := i.check(resource); err != nil {
		return nil, err
	}
	token, err := bearer(r)
	if err != nil {
		return nil, err
	}
	want := i.Audience
	if want == nil {
		want = []string{resource}
	}
	k, err := i.ask(r.Context(), token)
	switch {
	case err != nil:
		return nil, err
	case !includes(k.audiences, want):
		return nil, otherAudience{fmt.Errorf("the issuer says that the token is for %q, not for %q", text.Short(strings.Join(k.audiences, " ")), strings.Join(want, " "))}
	}
	if err := checkBinding(r, k.binding); err != nil {
		return nil, err
	}
	return k.principal, nil
}

var errInactive = fmt.Errorf("the issuer says that the token is not active: %w", ErrNoCredential)

// ask returns what is known of a token, or asks the issuer.
func (i *Introspection) ask(ctx context.Context, token string) (introspected, error) {
	hash, now := sha256.Sum256([]byte(token)), time.Now()
	if k, ok := i.known.get(hash); ok {
		if now.Before(k.until) {
			return k, nil
		}
		i.known.remove(hash)
	}
	if until, ok := i.refused.get(hash); ok {
		if now.Before(until) {
			return introspected{}, errInactive
		}
		i.refused.remove(hash)
	}
	f, err := i.fly(token, hash)
	if err != nil {
		return introspected{}, err
	}
	select {
	case <-f.done:
		return f.k, f.err
	case <-ctx.Done():
		return introspected{}, ctx.Err()
	}
}

// fly starts a question, or joins the one about the same token.
func (i *Introspection) fly(token string, hash [sha256.Size]byte) (*inspecting, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if f := i.flights[hash]; f != nil {
		return f, nil
	}
	select {
	case i.slots <- struct{}{}:
	default:
		return nil, fmt.Errorf("%w: %d introspections are in progress", ErrUnavailable, maxInspecting)
	}
	f := &inspecting{done: make(chan struct{})}
	i.flights[hash] = f
	go func() {
		defer func() { <-i.slots }()
		// All requests that wait share it.
		ctx, cancel := context.WithTimeout(context.Background(), introspectTimeout)
		defer cancel()
		f.k, f.err = i.inspect(ctx, token)
		switch {
		case f.err == nil && i.TTL >= 0:
			i.known.put(hash, f.k)
		case errors.Is(f.err, errInactive):
			i.refused.put(hash, time.Now().Add(refusedTTL))
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.flights, hash)
		close(f.done)
	}()
	return f, nil
}

// inspect asks the issuer about a token.
func (i *Introspection) inspect(ctx context.Context, token string) (k introspected, err error) {
	at, err := i.where(ctx)
	if err != nil {
		return k, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	start := time.Now()
	h := oauth.FormHeader()
	if i.ClientID != "" {
		oauth.SetBasic(h, i.ClientID, string(i.ClientSecret))
	}
	answer, err := i.fetch.Post(ctx, at, h, []byte(form.Encode()))
	if err != nil {
		return k, fmt.Errorf("%w: introspection: %w", ErrUnavailable, err)
	}
	if answer.Status != http.StatusOK {
		code, description := answer.Refusal()
		return k, fmt.Errorf("%w: introspection at %q: HTTP %d, error %q (%q)", ErrUnavailable, text.Short(at.String()), answer.Status, code, description)
	}
	var c claims
	if jsonx.Unmarshal(answer.Body, &c) != nil { // its text may hold the token
		return k, fmt.Errorf("%w: the answer of %q is not a JSON object", ErrUnavailable, text.Short(at.String()))
	}
	if c["active"] != true {
		return k, errInactive
	}
	if t := c.text("token_type"); t != "" && !strings.EqualFold(t, "Bearer") && !strings.EqualFold(t, "access_token") {
		return k, fmt.Errorf("the token has type %q, not Bearer", text.Short(t))
	}
	issuer := i.Issuer
	switch iss, ok := c["iss"].(string); {
	case issuer == "":
		issuer = i.URL // the endpoint is trusted for every token that it knows
	case ok && iss != issuer:
		return k, fmt.Errorf("the token was issued by %q, not by %q: %w", text.Short(iss), issuer, ErrNoCredential)
	}
	expires, err := c.current(start, 0)
	if err != nil {
		return k, err
	}
	if err := c.party(i.Clients); err != nil {
		return k, err
	}
	if k.binding, err = c.binding(); err != nil {
		return k, err
	}
	k.audiences = c.list("aud")
	ttl := i.TTL
	if ttl == 0 {
		ttl = 30 * time.Second
	}
	if k.until = start.Add(ttl); !expires.IsZero() && expires.Before(k.until) {
		k.until = expires
	}
	k.principal, err = c.principal("introspection", issuer, i.ScopesClaim, i.RolesClaim, expires)
	return k, err
}

// where finds the endpoint.
func (i *Introspection) where(ctx context.Context) (*url.URL, error) {
	i.mu.Lock()
	at := i.endpoint
	i.mu.Unlock()
	if at != nil {
		return at, nil
	}
	d, err := readDocument(ctx, i.fetch, i.Issuer)
	if err != nil {
		return nil, err
	}
	if at, err = oauth.CheckURL(d.IntrospectURL, i.fetch.Server); err != nil {
		return nil, fmt.Errorf("introspection_endpoint of %q: %w", text.Short(i.Issuer), err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.endpoint = at
	return at, nil
}
