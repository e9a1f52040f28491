package login

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
)

// prover makes the proofs that go with tokens bound to its key (DPoP). The key is made when it is
// first needed. A prover may be used by several goroutines at once.
//
// Specification: RFC 9449, 4 to 9.
type prover struct {
	once  sync.Once
	key   *ecdsa.PrivateKey
	fault error

	mu     sync.Mutex
	nonces map[string]string // the latest of each origin; guarded by mu
}

const (
	schemeDPoP    = "DPoP"
	useNonce      = "use_dpop_nonce"
	maxNonce      = 1024
	algorithmDPoP = jose.ES256 // which every revision of the extension asks for
)

// proof returns a proof for one request. The argument access is the request's access token, or ""
// if it has none.
func (d *prover) proof(method string, u *url.URL, access string) (string, error) {
	d.once.Do(func() { d.key, d.fault = ecdsa.GenerateKey(elliptic.P256(), rand.Reader) })
	if d.fault != nil {
		return "", d.fault
	}
	target := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath} // 4.2: no query
	if target.Path == "" {
		target.Path = "/"
	}
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": target.String(), "iat": time.Now().Unix()}
	if access != "" {
		sum := sha256.Sum256([]byte(access))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	if n := d.nonce(u); n != "" {
		claims["nonce"] = n
	}
	return sign(jose.SigningKey{Algorithm: algorithmDPoP, Key: d.key}, "dpop+jwt", true, claims)
}

func (d *prover) nonce(u *url.URL) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.nonces[oauth.Origin(u)]
}

// learn keeps the nonce of an answer, and reports whether the answer has one.
func (d *prover) learn(u *url.URL, h http.Header) bool {
	n := h.Get("DPoP-Nonce")
	if len(n) > maxNonce || !oauth.IsHeaderToken(n) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nonces == nil {
		d.nonces = map[string]string{}
	}
	d.nonces[oauth.Origin(u)] = n // few: the server, and the authorization servers that it named
	return true
}
