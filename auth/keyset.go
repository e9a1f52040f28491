package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// publicKey is a key of an issuer.
type publicKey struct {
	id  string // empty: it has none
	alg string // empty: any that suits the key
	key crypto.PublicKey
}

// suits reports whether the key can make signatures of an algorithm.
func (k *publicKey) suits(alg string) bool {
	if k.alg != "" && k.alg != alg {
		return false
	}
	switch key := k.key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return alg == map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[key.Curve.Params().BitSize]
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}

// checkKey reports whether a key is strong enough for signatures, and of a known kind.
func checkKey(key crypto.PublicKey) error {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if n := key.N.BitLen(); n < 2048 || n > 8192 {
			return fmt.Errorf("an RSA key has %d bits; it needs 2048 to 8192", n)
		}
	case *ecdsa.PublicKey:
		if _, err := key.ECDH(); err != nil { // not on one of the curves of NIST
			return fmt.Errorf("an EC key: %w", err)
		}
	case ed25519.PublicKey:
		if len(key) != ed25519.PublicKeySize {
			return errors.New("an Ed25519 key is too short")
		}
	default:
		return fmt.Errorf("a key of type %T cannot verify a token", key)
	}
	return nil
}

// Bounds of a set of keys.
const (
	maxKeys     = 100              // of one issuer
	maxTries    = 8                // keys tried on a token that does not name its own
	keysTTL     = 15 * time.Minute // after which the keys are looked at again
	refetchWait = time.Minute      // between two looks, at most; see pause
	firstPause  = 2 * time.Second  // after a look for an unknown key that found nothing new
	retryWait   = 5 * time.Second  // between two looks while no key is known at all
	keysTimeout = 15 * time.Second // for one look
	maxVain     = 6                // counted looks without a new key; the pause is refetchWait then
)

// parseKeySet reads a JSON Web Key Set. It skips secret keys, keys for encryption, and keys of
// unknown kinds (RFC 7517, 5).
func parseKeySet(document []byte) ([]publicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := jsonx.Unmarshal(document, &set); err != nil {
		return nil, fmt.Errorf("the key set: %w", err)
	}
	var keys []publicKey
	for _, raw := range set.Keys[:min(len(set.Keys), maxKeys)] {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(raw) != nil || !k.IsPublic() || !k.Valid() || k.Use != "" && k.Use != "sig" || checkKey(k.Key) != nil {
			continue
		}
		keys = append(keys, publicKey{k.KeyID, k.Algorithm, k.Key})
	}
	if keys == nil {
		return nil, errors.New("the key set has no key that can verify a token")
	}
	return keys, nil
}

// keySet has the keys of an issuer, and gets them again when they may have changed. For that it
// runs one goroutine at a time, which ends within keysTimeout.
//
// While the issuer cannot be reached, the known keys stay.
type keySet struct {
	load func(context.Context) ([]publicKey, error) // nil: the keys never change
	log  *slog.Logger

	stale atomic.Int64  // when to look at the keys again, in nanoseconds; zero: never
	lost  atomic.Uint64 // how often a key went away

	mu     sync.Mutex
	keys   []publicKey   // guarded by mu
	tried  time.Time     // the last look; zero: there was none; guarded by mu
	vain   int           // looks for unknown keys, one after the other, that found nothing new; guarded by mu
	fault  error         // of the last look; guarded by mu
	flight chan struct{} // closed when the look in progress is over; nil: there is none; guarded by mu
}

func fixedKeys(keys []publicKey) *keySet { return &keySet{keys: keys} }

// matching returns the keys that may have made a signature; named says that one of them has the
// id.
func (s *keySet) matching(id, alg string) (list []publicKey, named bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.keys {
		if (id == "" || k.id == "" || k.id == id) && k.suits(alg) && len(list) < maxTries {
			list = append(list, k)
			named = named || k.id != "" && k.id == id
		}
	}
	return list, named
}

// refresh starts a look at the keys if that is due, and does not wait for it.
func (s *keySet) refresh() {
	if at := s.stale.Load(); at == 0 || time.Now().UnixNano() < at {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight == nil && time.Since(s.tried) >= refetchWait {
		s.look(false)
	}
}

// pause returns the time until the next look for an unknown key, with mu held. Such a look is made at
// once, because the issuer may have a new key. Looks that find none are 2, 4, 8 seconds apart, and so on
// up to a minute, because everybody can send unknown keys.
func (s *keySet) pause() time.Duration {
	switch since := time.Since(s.tried); {
	case s.keys == nil:
		return retryWait - since
	case s.vain == 0 || since >= refetchWait:
		return 0
	default:
		return min(firstPause<<(s.vain-1), refetchWait) - since
	}
}

// more looks for new keys, unless it did so a moment ago, and waits for them. The error wraps
// ErrUnavailable if there are no keys at all.
func (s *keySet) more(ctx context.Context) error {
	s.mu.Lock()
	if s.load == nil {
		s.mu.Unlock()
		return nil
	}
	if s.flight == nil && (s.tried.IsZero() || s.pause() <= 0) {
		s.look(true)
	}
	flight := s.flight
	s.mu.Unlock()
	if flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		return fmt.Errorf("%w: the keys of the issuer: %w", ErrUnavailable, s.fault)
	}
	return nil
}

// look starts to look at the keys, with mu held; unknown says that it is for a key that is not known.
func (s *keySet) look(unknown bool) {
	if unknown && s.keys != nil {
		if time.Since(s.tried) >= refetchWait {
			s.vain = 0
		}
		s.vain = min(s.vain+1, maxVain)
	}
	done := make(chan struct{})
	s.flight, s.tried = done, time.Now()
	go func() {
		defer close(done)
		// All requests that wait share it.
		ctx, cancel := context.WithTimeout(context.Background(), keysTimeout)
		defer cancel()
		keys, err := s.load(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flight, s.fault = nil, err
		if err != nil {
			if s.log != nil {
				s.log.Warn("keys of an issuer not read", "err", err, "known", len(s.keys))
			}
			return
		}
		for _, old := range s.keys {
			if !slices.ContainsFunc(keys, func(k publicKey) bool { return k.id == old.id && sameKey(k.key, old.key) }) {
				s.lost.Add(1)
				break
			}
		}
		if slices.ContainsFunc(keys, func(k publicKey) bool {
			return !slices.ContainsFunc(s.keys, func(old publicKey) bool { return k.id == old.id && sameKey(k.key, old.key) })
		}) {
			s.vain = 0
		}
		s.keys = keys
		s.stale.Store(time.Now().Add(keysTTL).UnixNano())
	}()
}

func sameKey(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// issuerDocument is the part of an issuer's metadata that a resource server needs.
type issuerDocument struct {
	KeysURL       string `json:"jwks_uri"`
	IntrospectURL string `json:"introspection_endpoint"`
}

// issuerFetcher returns a Fetcher for the documents of an issuer, or of one of its endpoints. A URL
// in the issuer's metadata cannot lead further inside of the network than the issuer is.
func issuerFetcher(raw string, base http.RoundTripper) (*oauth.Fetcher, error) {
	u, err := url.Parse(raw)
	if err == nil {
		u, err = oauth.CheckURL(raw, u)
	}
	if err != nil {
		return nil, err
	}
	return oauth.NewFetcher(u, base), nil
}

// readDocument reads the metadata of the issuer.
func readDocument(ctx context.Context, f *oauth.Fetcher, issuer string) (*issuerDocument, error) {
	var d issuerDocument
	if err := f.Issuer(ctx, issuer, oauth.Revision, &d); err != nil {
		return nil, fmt.Errorf("issuer %q: %w", text.Short(issuer), err)
	}
	return &d, nil
}

// readKeys reads the key set at a URL, or the one that the issuer's metadata names.
func readKeys(ctx context.Context, f *oauth.Fetcher, issuer, at string) ([]publicKey, error) {
	if at == "" {
		d, err := readDocument(ctx, f, issuer)
		if err != nil {
			return nil, err
		}
		if at = d.KeysURL; at == "" {
			return nil, fmt.Errorf("the metadata of %q names no jwks_uri", text.Short(issuer))
		}
	}
	u, err := oauth.CheckURL(at, f.Server)
	if err != nil {
		return nil, err
	}
	var raw json.RawMessage
	if err := f.Get(ctx, u, oauth.Revision, &raw); err != nil {
		return nil, fmt.Errorf("key set at %q: %w", text.Short(at), err)
	}
	return parseKeySet(raw)
}
