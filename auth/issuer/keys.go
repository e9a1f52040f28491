package issuer

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

const (
	keyLife = 30 * 24 * time.Hour // after which there is a new signing key

	// keyNotice is the time between the first publication of a key and its first use. Verifiers look
	// at the keys every 15 minutes.
	keyNotice = time.Hour

	keyFile    = "keys.json"
	maxKeyFile = 64 << 10
)

// ring has the keys that sign tokens and the secret that seals values. In a folder they outlive the
// process.
type ring struct {
	sealer
	path   string  // empty: memory
	shared *shared // which changes come first to; nil: nothing is shared
	grace  time.Duration
	used   bool // the secret stays as it is

	mu   sync.Mutex
	keys []signingKey // the newest last, never empty; guarded by mu
}

// version is that of the formats of the folder.
const version = 1

// storedRing is the content of the file.
type storedRing struct {
	Version int         `json:"version"` // of all files of the folder
	Secret  []byte      `json:"secret"`
	Keys    []storedKey `json:"keys"`
}

type storedKey struct {
	ID   string    `json:"id"`
	DER  []byte    `json:"pkcs8"`
	Made time.Time `json:"made"`
}

type signingKey struct {
	id   string
	made time.Time
	key  *ecdsa.PrivateKey
}

// newKey makes a key for ES256. Its id is its thumbprint, shortened.
func newKey() (signingKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return signingKey{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return signingKey{}, err
	}
	sum := sha256.Sum256(der)
	return signingKey{base64.RawURLEncoding.EncodeToString(sum[:12]), time.Now(), key}, nil
}

// openRing reads the keys in a folder that nobody else uses, or makes them, and takes those of the others if they have some.
func openRing(dir string, tokenLife time.Duration, common *shared) (*ring, error) {
	r := &ring{grace: tokenLife + 10*time.Minute, shared: common}
	r.secret = make([]byte, 32)
	_, _ = rand.Read(r.secret)
	if dir != "" {
		r.path = filepath.Join(dir, keyFile)
		if err := r.load(); err != nil {
			return nil, err
		}
	}
	if common == nil {
		return r, r.rotate()
	}
	err := r.share()
	r.used = true
	return r, err
}

// due reports whether the keys have to change: there is none, or the newest is old, or an older one
// is not needed any more.
func (r *ring) due(now time.Time) bool {
	if len(r.keys) == 0 {
		return true
	}
	age := now.Sub(r.keys[len(r.keys)-1].made)
	return age >= keyLife || len(r.keys) > 1 && age >= keyNotice+r.grace
}

// rotate changes the keys if that is due.
func (r *ring) rotate() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.due(time.Now()):
		return nil
	case r.shared != nil:
		return r.shareLocked()
	}
	before := r.keys
	if err := r.change(); err != nil {
		return err
	}
	if err := r.save(); err != nil {
		r.keys = before
		return err
	}
	return nil
}

// share takes the keys of the others, or shares the own ones if there are none, and changes them for all if that is due.
func (r *ring) share() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shareLocked()
}

func (r *ring) shareLocked() (err error) {
	before := r.keys
	shareErr := r.shared.change(ofKeys, func(now []byte) (next []byte, _ time.Duration) {
		if err = nil; now != nil {
			err = r.take(now)
		}
		if err != nil || now != nil && !r.due(time.Now()) {
			return nil, 0
		}
		if err = r.change(); err == nil {
			next, err = r.marshal()
		}
		if err != nil {
			return nil, 0
		}
		return next, 0
	})
	if err = errors.Join(err, shareErr); err != nil {
		r.keys = before
		return err
	}
	return r.save()
}

// adopt takes the keys as another Server has changed them.
func (r *ring) adopt(raw []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.take(raw); err != nil {
		return err
	}
	return r.save()
}

// take makes the keys of another Server those of this one.
func (r *ring) take(raw []byte) error {
	secret, keys, err := parseRing(raw, "the keys of the cluster")
	switch {
	case err != nil:
		return err
	case bytes.Equal(secret, r.secret):
	case r.used:
		return errors.New("another node has made a secret of its own; restart this one")
	default:
		r.secret = secret
	}
	r.keys = keys
	return nil
}

// change drops keys that are not needed any more and makes one if it is time.
func (r *ring) change() error {
	now := time.Now()
	if n := len(r.keys); n > 1 && now.Sub(r.keys[n-1].made) >= keyNotice+r.grace {
		r.keys = r.keys[n-1:]
	}
	if n := len(r.keys); n > 0 && now.Sub(r.keys[n-1].made) < keyLife {
		return nil
	}
	k, err := newKey()
	if err != nil {
		return err
	}
	r.keys = append(r.keys[:len(r.keys):len(r.keys)], k)
	return nil
}

// load reads the file, if there is one.
func (r *ring) load() error {
	raw, err := ownfile.ReadNow(r.path, maxKeyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("keys of the issuer: %w", err)
	}
	r.secret, r.keys, err = parseRing(raw, r.path)
	return err
}

// parseRing reads a storedRing, which is at a place.
func parseRing(raw []byte, at string) (secret []byte, keys []signingKey, err error) {
	if err := ownfile.Newer(at, raw, version); err != nil {
		return nil, nil, fmt.Errorf("keys of the issuer: %w", err)
	}
	var stored storedRing
	if err := jsonx.Unmarshal(raw, &stored); err != nil || len(stored.Secret) < 32 || len(stored.Keys) == 0 {
		return nil, nil, fmt.Errorf("keys of the issuer: %s has no keys, or is cut off; remove it to make new ones, which ends all logins", at)
	}
	for _, k := range stored.Keys {
		parsed, err := x509.ParsePKCS8PrivateKey(k.DER)
		key, ok := parsed.(*ecdsa.PrivateKey)
		if err != nil || !ok || key.Curve != elliptic.P256() {
			return nil, nil, fmt.Errorf("keys of the issuer: %s: the key %q is not a private key for ES256", at, k.ID)
		}
		keys = append(keys, signingKey{k.ID, k.Made, key})
	}
	return stored.Secret, keys, nil
}

func (r *ring) marshal() ([]byte, error) {
	stored := storedRing{Version: version, Secret: r.secret}
	for _, k := range r.keys {
		der, err := x509.MarshalPKCS8PrivateKey(k.key)
		if err != nil {
			return nil, err
		}
		stored.Keys = append(stored.Keys, storedKey{k.id, der, k.made})
	}
	return jsonx.Marshal(stored)
}

func (r *ring) save() error {
	if r.path == "" {
		return nil
	}
	raw, err := r.marshal()
	if err != nil {
		return err
	}
	return ownfile.Replace(r.path, append(raw, '\n'))
}

// current returns the key that signs: the newest that was published for long enough, else the oldest.
func (r *ring) current() (signingKey, error) {
	err := r.rotate()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.keys) == 0 {
		return signingKey{}, err
	}
	best := r.keys[0] // also when a new key cannot be saved: the old one signs until it can
	for _, k := range r.keys[1:] {
		if time.Since(k.made) >= keyNotice {
			best = k
		}
	}
	return best, nil
}

// public returns the JSON Web Key Set.
func (r *ring) public() ([]byte, error) {
	if _, err := r.current(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	set := jose.JSONWebKeySet{}
	for _, k := range r.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.key.Public(), KeyID: k.id, Algorithm: "ES256", Use: "sig"})
	}
	return json.Marshal(set)
}

// sign returns an access token with claims (RFC 9068).
func (r *ring) sign(claims map[string]any) (string, error) {
	k, err := r.current()
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: k.key}, (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", k.id))
	if err != nil {
		return "", err
	}
	payload, err := jsonx.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// claimsOf returns the claims of a token that a key of the ring has signed. It does not check times.
func (r *ring) claimsOf(token string) (map[string]any, error) {
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.keys {
		if payload, err := signed.Verify(k.key.Public()); err == nil {
			var claims map[string]any
			return claims, jsonx.Unmarshal(payload, &claims)
		}
	}
	return nil, errSeal
}
