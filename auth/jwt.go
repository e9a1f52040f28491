package auth

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// JWT is a [Verifier] of the access tokens of one issuer that are signed JSON Web Tokens. Issuer
// is required, unless there is a Secret. The keys come from Keys, from KeysURL, from Secret, or,
// if none is set, from the URL in the metadata of the issuer (RFC 8414, OpenID Connect Discovery).
//
// A token must be signed by a key of the issuer, name the issuer and one of the audiences, and
// have an exp that has not passed; nbf is checked if it is there, and iat must not be in the
// future. Base64 that is not canonical (RFC 7515) makes a token invalid. A token that names
// another issuer is left to the next verifier. Its type, if it has one, must be JWT or at+jwt. A
// token bound to a client certificate (RFC 8705) is valid only on connections with that
// certificate; one bound to another key (DPoP) is refused.
//
// A token that was accepted is remembered until it expires, or until a key of the issuer goes
// away: the issuer is not asked whether it has revoked the token. Use [Introspection], or tokens
// with a short life, where that matters. Keys are kept for 15 minutes, and while the issuer cannot
// be reached. A token of an unknown key causes a new look for keys at once; while such looks find no
// new key, they are 2 seconds apart, then 4, and so on up to a minute.
//
// No field may change after the first use.
//
// Specification: RFC 9068, 4; RFC 7519; RFC 8725; 2026-07-28, basic/authorization, Token Handling.
type JWT struct {
	// Issuer is the iss of the tokens, character by character, and the URL of the
	// authorization server.
	Issuer string

	// Audience are the audiences that tokens may be for. Nil: the Resource of the Guard.
	Audience []string

	// KeysURL is the URL of the JSON Web Key Set: https, or http on loopback.
	KeysURL string

	// Keys are *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey, or a jose.JSONWebKey of
	// github.com/go-jose/go-jose/v4 with one of them, whose alg, kid and use are checked too.
	Keys []crypto.PublicKey

	// Secret signs tokens with HMAC, and has at least 32 bytes: for set-ups where the server and
	// the issuer belong to the same operator, and for tests. Without an Issuer, iss is not
	// checked; without Audience and Resource, neither is aud.
	Secret Secret

	// Algorithms are the allowed signature algorithms. Nil: with a Secret HS256, HS384 and
	// HS512; without one RS256, PS256, ES256, their relatives of 384 and 512 bits, and EdDSA. Any
	// algorithm outside of that list is an error.
	Algorithms []string

	// Leeway is by how much clocks may differ. Zero: a minute, negative: not at all; at most 5
	// minutes.
	Leeway time.Duration

	// Clients are the OAuth clients whose tokens are accepted, by client_id or azp. Nil: any. A
	// token that names two different clients is refused in any case.
	Clients []string

	// ScopesClaim names the claim with the scopes, an array or a text with blanks between them; a
	// dot leads into a claim. Empty: "scope", or "scp" without that.
	ScopesClaim string

	// RolesClaim names the claim with the roles; a dot leads into a claim:
	// "realm_access.roles". Empty: "roles".
	RolesClaim string

	// Refuse is called with the owner of a token that is valid otherwise, for each request; an error
	// refuses the token. It serves issuers that can say which tokens they have revoked. Nil: none is
	// refused.
	Refuse func(p *Principal) error

	// Base sends the requests to the issuer, and decides which addresses may be connected to. Nil:
	// connections of its own, whose addresses are checked.
	Base http.RoundTripper

	// Logger gets a line when the keys cannot be read. If nil, nothing is logged.
	Logger *slog.Logger

	once  sync.Once
	fault error // of the fields
	keys  *keySet
	algs  []jose.SignatureAlgorithm
	known *cache[knownToken]
}

// maxKnown bounds the tokens that a verifier remembers.
const maxKnown = 4096

// knownToken is a token that was accepted.
type knownToken struct {
	principal *Principal
	audiences []string
	binding   string
	lost      uint64 // of the keySet
}

const maxLeeway = 5 * time.Minute

var (
	asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
	symmetric  = []string{"HS256", "HS384", "HS512"}
)

func (j *JWT) prepare() { j.fault = j.resolve() }

func (j *JWT) resolve() error {
	j.known = newCache[knownToken](maxKnown)
	allowed, sources := asymmetric, 0
	for _, set := range []bool{j.KeysURL != "", len(j.Keys) > 0, len(j.Secret) > 0} {
		if set {
			sources++
		}
	}
	switch {
	case sources > 1:
		return errors.New("JWT: set one of KeysURL, Keys and Secret")
	case len(j.Secret) > 0:
		allowed = symmetric
		if len(j.Secret) < 32 {
			return fmt.Errorf("JWT: Secret has %d bytes; it needs at least 32", len(j.Secret))
		}
	case j.Issuer == "":
		return errors.New("JWT: Issuer is not set")
	}
	if j.Leeway > maxLeeway {
		return fmt.Errorf("JWT: Leeway %v is over the limit of %v", j.Leeway, maxLeeway)
	}
	algs := j.Algorithms
	if algs == nil {
		algs = allowed
	}
	for _, a := range algs {
		if !slices.Contains(allowed, a) {
			return fmt.Errorf("JWT: algorithm %q does not fit this kind of key; use one of %s", text.Short(a), strings.Join(allowed, ", "))
		}
		j.algs = append(j.algs, jose.SignatureAlgorithm(a))
	}
	if len(j.Secret) > 0 {
		return nil
	}
	if u, err := url.Parse(j.Issuer); err != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("JWT: Issuer %q must be a URL without query and fragment", text.Short(j.Issuer))
	}
	if len(j.Keys) > 0 {
		var keys []publicKey
		for _, k := range j.Keys {
			key := publicKey{key: k}
			if web, ok := k.(jose.JSONWebKey); ok {
				if web.Use != "" && web.Use != "sig" {
					return fmt.Errorf("JWT: Keys: the key %q is for %q, not for signatures", text.Short(web.KeyID), text.Short(web.Use))
				}
				key = publicKey{web.KeyID, web.Algorithm, web.Key}
			}
			if err := checkKey(key.key); err != nil {
				return fmt.Errorf("JWT: Keys: %w", err)
			}
			keys = append(keys, key)
		}
		j.keys = fixedKeys(keys)
		return nil
	}
	from := j.KeysURL
	if from == "" {
		from = j.Issuer
	}
	f, err := issuerFetcher(from, j.Base)
	if err != nil {
		return fmt.Errorf("JWT: %w", err)
	}
	j.keys = &keySet{log: j.Logger, load: func(ctx context.Context) ([]publicKey, error) { return readKeys(ctx, f, j.Issuer, j.KeysURL) }}
	return nil
}

func (j *JWT) check(resource string) error {
	j.once.Do(j.prepare)
	if j.fault == nil && len(j.audience(resource)) == 0 && len(j.Secret) == 0 {
		return fmt.Errorf("JWT: neither Audience nor the Guard's Resource is set, so tokens for any server would be accepted")
	}
	return j.fault
}

func (j *JWT) issuer() string {
	if len(j.Secret) > 0 {
		return "" // no client can log in there
	}
	return j.Issuer
}

func (j *JWT) audience(resource string) []string {
	if j.Audience == nil && resource != "" {
		return []string{resource}
	}
	return j.Audience
}

// Verify implements [Verifier]. Outside of a Guard with a Resource it needs an Audience.
func (j *JWT) Verify(r *http.Request) (*Principal, error) { return j.verifyFor(r, "") }

func (j *JWT) verifyFor(r *http.Request, resource string) (*Principal, error) {
	if err := j.check(resource); err != nil {
		return nil, err
	}
	token, err := bearer(r)
	if err != nil {
		return nil, err
	}
	if strings.Count(token, ".") != 2 {
		return nil, ErrNoCredential
	}
	hash := sha256.Sum256([]byte(token))
	if j.keys != nil {
		j.keys.refresh()
	}
	k, ok := j.known.get(hash)
	if ok && (k.principal.expired(time.Now()) || j.keys != nil && k.lost != j.keys.lost.Load()) {
		j.known.remove(hash)
		ok = false
	}
	if !ok {
		if k, err = j.read(r.Context(), token); err != nil {
			return nil, err
		}
		j.known.put(hash, k)
	}
	if want := j.audience(resource); len(want) > 0 && !includes(k.audiences, want) {
		return nil, otherAudience{fmt.Errorf("the token is for %q, not for %q", text.Short(strings.Join(k.audiences, " ")), strings.Join(want, " "))}
	}
	if err := checkBinding(r, k.binding); err != nil {
		return nil, err
	}
	if j.Refuse != nil {
		if err := j.Refuse(k.principal); err != nil {
			return nil, err
		}
	}
	return k.principal, nil
}

// tokenHeader is the part of a token's header that names its key.
type tokenHeader struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

// peek decodes a token and does not verify it.
func peek(token string) (h tokenHeader, c claims, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return h, nil, errors.New("it does not have three parts")
	}
	for i, into := range []any{&h, &c, nil} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		switch {
		case err != nil:
		case base64.RawURLEncoding.EncodeToString(raw) != parts[i]: // one token has one spelling
			err = errors.New("its base64 is not canonical")
		case into != nil:
			err = jsonx.Unmarshal(raw, into)
		}
		if err != nil {
			return h, nil, err
		}
	}
	return h, c, nil
}

// read verifies a token, except for its audience and its binding.
func (j *JWT) read(ctx context.Context, token string) (k knownToken, err error) {
	h, c, err := peek(token)
	switch {
	case err != nil:
		return k, fmt.Errorf("the token is not a JWT: %w", ErrNoCredential)
	case j.Issuer != "" && c["iss"] != j.Issuer:
		return k, fmt.Errorf("the token was issued by %q, not by %q: %w", text.Short(c.text("iss")), j.Issuer, ErrNoCredential)
	case !slices.Contains(j.algs, jose.SignatureAlgorithm(h.Algorithm)):
		return k, fmt.Errorf("the token has the algorithm %q: %w", text.Short(h.Algorithm), ErrNoCredential)
	}
	switch t := strings.ToLower(h.Type); strings.TrimPrefix(t, "application/") {
	case "", "jwt", "at+jwt":
	default:
		return k, fmt.Errorf("the token has type %q and is not an access token", text.Short(h.Type))
	}
	if j.keys != nil {
		k.lost = j.keys.lost.Load() // before the keys are looked at
	}
	if err := j.verify(ctx, token, h); err != nil {
		return k, err
	}
	// The claims that were read are the verified ones: both are the second part of the token.
	leeway := j.Leeway
	switch {
	case leeway == 0:
		leeway = time.Minute
	case leeway < 0:
		leeway = 0
	}
	expires, err := c.current(time.Now(), leeway)
	switch {
	case err != nil:
		return k, err
	case expires.IsZero():
		return k, errors.New("the token has no exp")
	}
	if err := c.party(j.Clients); err != nil {
		return k, err
	}
	if k.binding, err = c.binding(); err != nil {
		return k, err
	}
	k.audiences = c.list("aud")
	k.principal, err = c.principal("jwt", j.Issuer, j.ScopesClaim, j.RolesClaim, expires)
	return k, err
}

// verify checks the signature of a token.
func (j *JWT) verify(ctx context.Context, token string, h tokenHeader) error {
	sig, err := jose.ParseSignedCompact(token, j.algs)
	if err != nil {
		return fmt.Errorf("the token cannot be read: %w", err)
	}
	if len(j.Secret) > 0 {
		if _, err := sig.Verify([]byte(j.Secret)); err != nil {
			return errBadSignature
		}
		return nil
	}
	for again := false; ; again = true {
		keys, named := j.keys.matching(h.KeyID, h.Algorithm)
		for _, key := range keys {
			if _, err := sig.Verify(key.key); err == nil {
				return nil
			}
		}
		switch {
		case named, again && len(keys) > 0:
			return errBadSignature
		case again:
			return fmt.Errorf("the issuer has no key %q for %s", text.Short(h.KeyID), h.Algorithm)
		}
		if err := j.keys.more(ctx); err != nil {
			return err
		}
	}
}

var errBadSignature = errors.New("the token's signature does not match a key of the issuer")
