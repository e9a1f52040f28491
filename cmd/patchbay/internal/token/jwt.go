package token

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// JWT describes a token to sign. Empty fields are left out of it.
type JWT struct {
	Subject  string
	Issuer   string
	Audience []string
	Scopes   []string
	Roles    []string
	Claims   []string // others, each NAME=VALUE; VALUE is JSON, or text
	TTL      time.Duration
}

// Payload returns the claims of the token as of now. The error names the faulty word of Claims.
func (t *JWT) Payload(now time.Time) ([]byte, error) {
	claims := map[string]any{"sub": t.Subject, "iat": now.Unix(), "exp": now.Add(t.TTL).Unix()}
	for name, v := range map[string]string{"iss": t.Issuer, "scope": strings.Join(t.Scopes, " ")} {
		if v != "" {
			claims[name] = v
		}
	}
	for name, list := range map[string][]string{"aud": t.Audience, "roles": t.Roles} {
		if list != nil {
			claims[name] = list
		}
	}
	for _, text := range t.Claims {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--claim %s is not NAME=VALUE", text)
		}
		claims[name] = value
		if jsonx.Valid([]byte(value), 0) == nil {
			claims[name] = json.RawMessage(value)
		}
	}
	return jsonx.Marshal(claims)
}

// Sign returns a payload as a signed JWT: with a secret ([]byte) by HS256, with a key of [Key] by
// ES256.
func Sign(payload []byte, key any) (string, error) {
	with := jose.SigningKey{Algorithm: jose.ES256, Key: key}
	if _, secret := key.([]byte); secret {
		with.Algorithm = jose.HS256
	}
	signer, err := jose.NewSigner(with, (&jose.SignerOptions{}).WithType("at+jwt"))
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
