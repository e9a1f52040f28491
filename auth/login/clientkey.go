package login

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// ClientKey is the private key of a client, which authenticates with signatures instead of a
// secret (private_key_jwt). It never prints itself.
type ClientKey struct {
	id        string
	key       crypto.Signer
	algorithm jose.SignatureAlgorithm
}

// NewClientKey returns a key to sign with: an RSA key of at least 2048 bits for RS256, one of
// P-256 for ES256, one of P-384 for ES384, or an Ed25519 key for EdDSA. The id is the key id at
// the authorization server; it is empty if the client has one key only.
func NewClientKey(id string, key crypto.Signer) (*ClientKey, error) {
	k := &ClientKey{id: id, key: key}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		k.algorithm = map[int]jose.SignatureAlgorithm{256: jose.ES256, 384: jose.ES384}[key.Params().BitSize]
	case *rsa.PrivateKey:
		if key.N.BitLen() >= 2048 {
			k.algorithm = jose.RS256
		}
	case ed25519.PrivateKey:
		k.algorithm = jose.EdDSA
	}
	if k.algorithm == "" {
		return nil, fmt.Errorf("a client cannot sign with a %T of this size", key)
	}
	return k, nil
}

// ParseClientKey reads a private key in PEM (PKCS #8, or the older forms of RSA and EC
// keys), which must not be encrypted.
func ParseClientKey(id string, encoded []byte) (*ClientKey, error) {
	block, _ := pem.Decode(encoded)
	if block == nil {
		return nil, errors.New("the text has no private key in PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("the PEM block %q is not a private key in PKCS #8 or an older form of RSA or EC keys", text.Short(block.Type))
	}
	if err != nil {
		return nil, errors.New("the private key cannot be read") // the cause may quote it
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the private key cannot sign")
	}
	return NewClientKey(id, s)
}

func (*ClientKey) String() string   { return "[redacted]" }
func (*ClientKey) GoString() string { return "[redacted]" }

// MarshalJSON fails, so that no key is written by accident.
func (*ClientKey) MarshalJSON() ([]byte, error) {
	return nil, errors.New("login: a private key cannot be encoded as JSON")
}

// assertionLife is short because an assertion is used at once, and once. The authorization server
// allows for clocks that differ (RFC 7523, 3).
const assertionLife = time.Minute

// assert returns a JWT that authenticates a client at an authorization server (RFC 7523, 2.2 and
// 3).
func (k *ClientKey) assert(client, issuer string) (string, error) {
	now := time.Now()
	return sign(jose.SigningKey{Algorithm: k.algorithm, Key: jose.JSONWebKey{Key: k.key, KeyID: k.id}}, "JWT", false, map[string]any{
		"iss": client, "sub": client, "aud": issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
}

// sign returns a signed JWT. If embed is set, its header has the public key.
func sign(key jose.SigningKey, kind jose.ContentType, embed bool, claims map[string]any) (string, error) {
	s, err := jose.NewSigner(key, (&jose.SignerOptions{EmbedJWK: embed}).WithType(kind))
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	jws, err := s.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return jws.CompactSerialize()
}
