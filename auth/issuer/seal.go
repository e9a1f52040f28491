package issuer

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Purposes of sealed values. A value of one purpose cannot be opened as one of another.
const (
	forClient  = "client"  // ids of registered clients
	forSecret  = "secret"  // of registered clients
	forConsent = "consent" // the form of the consent page
	forLogin   = "login"   // the cookie of a login in progress
	forAgreed  = "agreed"  // the cookie of what a browser has agreed to
	forRefresh = "refresh" // refresh tokens
)

// sealer encrypts values that travel with others.
type sealer struct{ secret []byte }

// keyFor returns the key of a purpose.
func (s sealer) keyFor(purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, s.secret, nil, "patchbay issuer "+purpose, 32)
}

func (s sealer) aead(purpose string) (cipher.AEAD, error) {
	key, err := s.keyFor(purpose)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts a value for a purpose.
func (s sealer) seal(purpose string, v any) (string, error) {
	raw, err := jsonx.Marshal(v)
	if err != nil {
		return "", err
	}
	a, err := s.aead(purpose)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(a.Seal(nil, nil, raw, nil)), nil
}

var errSeal = errors.New("it was not made here, or it was changed")

// open decrypts what seal has made for the same purpose.
func (s sealer) open(purpose, sealed string, into any) error {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return errSeal
	}
	a, err := s.aead(purpose)
	if err != nil {
		return err
	}
	clear, err := a.Open(nil, nil, raw, nil)
	if err != nil {
		return errSeal
	}
	return jsonx.Unmarshal(clear, into)
}

// random returns an unguessable text of 256 bits.
func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
