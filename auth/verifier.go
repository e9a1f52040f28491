package auth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
)

// A Verifier checks one kind of credential. [JWT], [Introspection], [APIKeys], [Basic] and [MTLS]
// are some.
//
// Verify looks for a credential of its kind in a request and returns its owner. The error is, or
// wraps, [ErrNoCredential] if there is none, or one that other verifiers may know: then the next
// one is asked. It wraps [ErrUnavailable] if the credential cannot be checked at the moment. Any
// other error refuses the request; it is logged, is not sent to the caller, and must not hold the
// credential. The Principal is not changed after Verify has returned it.
//
// A [Guard] calls Verify once for each request, and once a second more while a stream or a
// WebSocket is open, with the headers of the request that opened it and without a body.
//
// The methods of a Verifier may be called by several goroutines at once.
type Verifier interface {
	Verify(r *http.Request) (*Principal, error)
}

var (
	// ErrNoCredential says that a request has no credential that a Verifier knows.
	ErrNoCredential = errors.New("auth: no credential of this kind")

	// ErrUnavailable says that a credential cannot be checked now, through no fault of the caller.
	// The answer is 503.
	ErrUnavailable = errors.New("auth: credentials cannot be checked at the moment")
)

// errMalformed says that the credentials of a request cannot be parsed. The answer is 400 (RFC
// 6750, 3.1: invalid_request).
var errMalformed = errors.New("malformed authorization")

// maxCredential bounds the bytes of an Authorization header. It is checked before anything else.
const maxCredential = 16 << 10

// credential is what the Authorization header of a request holds.
type credential struct{ scheme, value string }

// credentialOf reads the Authorization header. Without one it is zero.
func credentialOf(r *http.Request) (c credential, err error) {
	values := r.Header["Authorization"]
	switch len(values) {
	case 0:
		return c, nil
	case 1:
	default:
		return c, fmt.Errorf("%w: %d Authorization headers", errMalformed, len(values))
	}
	v := values[0]
	if len(v) > maxCredential {
		return c, fmt.Errorf("%w: the Authorization header has %d bytes, over the limit of %d", errMalformed, len(v), maxCredential)
	}
	c.scheme, c.value, _ = strings.Cut(v, " ")
	c.value = strings.Trim(c.value, " ")
	if c.scheme == "" || c.value == "" || !oauth.IsHeaderToken(c.value) {
		// Several headers that a proxy has joined come here too: "Bearer a, Bearer b".
		return credential{}, fmt.Errorf("%w: the Authorization header is not a scheme and one credential", errMalformed)
	}
	return c, nil
}

// bearer returns the Bearer token of a request (RFC 6750, 2.1). Tokens in queries and in forms are
// ignored.
func bearer(r *http.Request) (string, error) {
	c, err := credentialOf(r)
	switch {
	case err != nil:
		return "", err
	case !strings.EqualFold(c.scheme, "Bearer"):
		return "", ErrNoCredential
	}
	return c.value, nil
}

// maxSubject bounds the bytes of a subject, and of other names of principals.
const maxSubject = 1024

// checkName reports whether a text can name a principal.
func checkName(what, s string) error {
	if s == "" || len(s) > maxSubject || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("%s is empty, longer than %d bytes, or has characters that a name cannot have", what, maxSubject)
	}
	return nil
}

// expired reports whether the credential of a principal has expired.
func (p *Principal) expired(now time.Time) bool { return !p.Expires.IsZero() && !now.Before(p.Expires) }
