package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// An APIKey is the entry of one key in a file. It verifies the key and does not reveal it.
// [NewAPIKey] makes one.
type APIKey struct {
	ID      string    `json:"id"`               // the part of the key that is not secret
	Hash    string    `json:"hash"`             // "sha256:" and the hash of the whole key, in hex
	Subject string    `json:"subject"`          // the owner; several keys may have the same
	Name    string    `json:"name,omitempty"`   // for people
	Scopes  []string  `json:"scopes,omitempty"` // granted
	Roles   []string  `json:"roles,omitempty"`  //
	Expires time.Time `json:"expires,omitzero"` // zero: never
}

// keyPrefix begins every key, so that leaked keys can be searched for.
const keyPrefix = "pb_"

const hashPrefix = "sha256:"

// NewAPIKey makes a key for a subject: pb_ID_SECRET. The secret has 130 random bits, so a fast
// hash protects it. Give the key to the caller, and keep the entry.
func NewAPIKey(subject string) (key string, entry APIKey) {
	id := strings.ToLower(rand.Text()[:12])
	key = keyPrefix + id + "_" + rand.Text()
	return key, APIKey{ID: id, Hash: hashKey(key), Subject: subject}
}

func hashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// ParseAPIKeys reads entries in JSON, one per line. Empty lines, and those that begin with #, are
// skipped. An error names the invalid lines; the entries of the other lines are returned with it.
func ParseAPIKeys(file []byte) ([]APIKey, error) {
	var list []APIKey
	var faults faults
	n := 0
	for line := range bytes.Lines(file) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		var k APIKey
		err := jsonx.Unmarshal(line, &k)
		if err == nil {
			err = k.check()
		}
		if err != nil {
			faults.add("line %d: %w", n, err)
			continue
		}
		list = append(list, k)
	}
	return list, faults.err()
}

// faults are those of the lines of a file. The first few are kept.
type faults struct {
	list []error
	more int
}

func (f *faults) add(format string, args ...any) {
	if len(f.list) == 5 {
		f.more++
		return
	}
	f.list = append(f.list, fmt.Errorf(format, args...))
}

func (f *faults) err() error {
	if f.more > 0 {
		return errors.Join(append(f.list, fmt.Errorf("and %d more", f.more))...)
	}
	return errors.Join(f.list...)
}

func (k *APIKey) check() error {
	sum, err := hex.DecodeString(strings.TrimPrefix(k.Hash, hashPrefix))
	switch {
	case k.ID == "" || strings.ContainsAny(k.ID, "_ "):
		return fmt.Errorf("%q is not a valid key id", text.Short(k.ID))
	case !strings.HasPrefix(k.Hash, hashPrefix) || err != nil || len(sum) != sha256.Size:
		return fmt.Errorf("key %q: hash must be sha256: and 64 hexadecimal digits", text.Short(k.ID))
	case checkName("", k.Subject) != nil:
		return fmt.Errorf("key %q: %w", text.Short(k.ID), checkName("subject", k.Subject))
	}
	for _, s := range k.Scopes {
		if !oauth.IsScope(s) {
			return fmt.Errorf("key %q: %q is not a scope", text.Short(k.ID), text.Short(s))
		}
	}
	return nil
}

// APIKeys is a [Verifier] of keys that [NewAPIKey] made: as a Bearer token, in a header of their
// own, or as the password of Basic credentials (RFC 7617), whose user name is then empty, "key", or
// the ID or Subject of the key. One of Keys and File is required.
type APIKeys struct {
	// Keys are entries in addition to those of File.
	Keys []APIKey

	// File has the entries, as [ParseAPIKeys] reads them. It is checked for changes once a second.
	// A file that was deleted has no keys, and an invalid line is not a key; while the file cannot
	// be read, the entries read last stay valid.
	File string

	// Header is a header that may have the key instead of Authorization. Empty: X-API-Key.
	Header string

	// Logger logs errors in File after its first reading. If nil, they are not logged.
	Logger *slog.Logger

	file watched[map[string]*knownKey]
}

// knownKey is an entry, with the principal of all requests with it.
type knownKey struct {
	APIKey
	principal Principal
}

// Verify implements [Verifier].
func (a *APIKeys) Verify(r *http.Request) (*Principal, error) {
	user, key, err := a.keyOf(r)
	if err != nil {
		return nil, err
	}
	id, secret, ok := strings.Cut(strings.TrimPrefix(key, keyPrefix), "_")
	if !ok || secret == "" || !strings.HasPrefix(key, keyPrefix) {
		return nil, fmt.Errorf("the API key does not have the form %sID_SECRET", keyPrefix)
	}
	keys, err := a.known()
	if err != nil {
		return nil, err
	}
	k := keys[id]
	if k == nil {
		return nil, fmt.Errorf("there is no API key %q: %w", text.Short(id), ErrNoCredential)
	}
	if subtle.ConstantTimeCompare([]byte(hashKey(key)), []byte(strings.ToLower(k.Hash))) != 1 {
		return nil, fmt.Errorf("wrong secret for API key %q", text.Short(id))
	}
	switch user {
	case "", "key", k.ID, k.Subject:
	default:
		return nil, fmt.Errorf("the user name %q is not empty, \"key\", or the id or subject of API key %q", text.Short(user), text.Short(id))
	}
	return &k.principal, nil
}

// keyOf finds the key in a request, and the user name that came with it.
func (a *APIKeys) keyOf(r *http.Request) (user, key string, err error) {
	name := a.Header
	if name == "" {
		name = "X-API-Key"
	}
	switch values := r.Header.Values(name); {
	case len(values) > 1:
		return "", "", fmt.Errorf("%w: %d headers %s", errMalformed, len(values), name)
	case len(values) == 1 && len(values[0]) > maxCredential:
		return "", "", fmt.Errorf("%w: the header %s has more than %d bytes", errMalformed, name, maxCredential)
	case len(values) == 1:
		return "", values[0], nil
	}
	c, err := credentialOf(r)
	switch {
	case err != nil:
		return "", "", err
	case strings.EqualFold(c.scheme, "Bearer"):
		key = c.value
	case strings.EqualFold(c.scheme, "Basic"):
		user, key, _ = c.password()
	}
	if !strings.HasPrefix(key, keyPrefix) {
		return "", "", ErrNoCredential
	}
	return user, key, nil
}

// known returns the keys by id.
func (a *APIKeys) known() (map[string]*knownKey, error) {
	return a.file.get(a.File, a.Logger, func(content []byte) (map[string]*knownKey, error) {
		list, err := ParseAPIKeys(content)
		var faults faults
		for _, k := range a.Keys {
			if err := k.check(); err != nil {
				faults.add("%w", err)
				continue
			}
			list = append(list, k)
		}
		m := make(map[string]*knownKey, len(list))
		for i := range list {
			k := &knownKey{APIKey: list[i]}
			k.principal = Principal{
				ID: "apikey#" + k.Subject, Scheme: "apikey", Subject: k.Subject, ClientID: k.ID, Name: k.Name,
				Scopes: k.Scopes, Roles: k.Roles, Expires: k.Expires,
			}
			if _, twice := m[k.ID]; twice {
				faults.add("key %q is listed twice", text.Short(k.ID))
				k = nil // neither of the two is an entry
			}
			m[list[i].ID] = k
		}
		return m, errors.Join(err, faults.err())
	})
}

// Fault returns why File, as it is now, is not, or not all, in use: it cannot be read, is gone, or has
// invalid lines, which follow in lines of their own. It returns nil if there is no fault.
func (a *APIKeys) Fault() error {
	if _, err := a.known(); err != nil {
		return err
	}
	return a.file.fault()
}

func (a *APIKeys) check(string) error {
	if a.File == "" && a.Keys == nil {
		return fmt.Errorf("APIKeys: neither Keys nor File is set")
	}
	if _, err := a.known(); err != nil {
		return fmt.Errorf("APIKeys: %w", err)
	}
	return nil
}
