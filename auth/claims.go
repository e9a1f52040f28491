package auth

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// claims are the claims of a token, or the members of an introspection response, which have the
// same names (RFC 7519, 4; RFC 7662, 2.2; RFC 9068, 2.2).
type claims map[string]any

func (c claims) text(names ...string) string {
	for _, name := range names {
		if s, _ := c[name].(string); s != "" && len(s) <= maxSubject {
			return s
		}
	}
	return ""
}

// list reads a claim that is a list of texts, or one.
func (c claims) list(name string) []string { return texts(c[name]) }

func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				list = append(list, s)
			}
		}
	}
	return list
}

// path reads a claim within other claims, such as "realm_access.roles". A claim with the dot in its
// own name takes precedence.
func (c claims) path(name string) any {
	if v, ok := c[name]; ok {
		return v
	}
	first, rest, nested := strings.Cut(name, ".")
	if inner, ok := c[first].(map[string]any); ok && nested {
		return claims(inner).path(rest)
	}
	return nil
}

// time reads a claim of seconds since 1970; zero if it is not there.
func (c claims) time(name string) (time.Time, error) {
	v, ok := c[name]
	if !ok {
		return time.Time{}, nil
	}
	s, ok := v.(float64)
	if !ok || !(s > 0 && s < 1<<40) {
		return time.Time{}, fmt.Errorf("%s is not a time in seconds", name)
	}
	whole, part := math.Modf(s)
	return time.Unix(int64(whole), int64(part*1e9)), nil
}

// scopes reads the granted scopes: texts separated by blanks (RFC 9068, 2.2.3), or an array of them.
// Without the name of a claim they are in scope, or in scp, as some issuers call it.
func (c claims) scopes(claim string) (list []string) {
	all := texts(c.path(cmp.Or(claim, "scope")))
	if all == nil && claim == "" {
		all = c.list("scp")
	}
	for _, s := range all {
		for name := range strings.FieldsSeq(s) {
			if oauth.IsScope(name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// current checks the times of claims against now. It returns when the claims expire, zero if they
// do not say. The argument leeway allows for clocks that differ; iat is allowed at least a minute.
func (c claims) current(now time.Time, leeway time.Duration) (time.Time, error) {
	exp, err := c.time("exp")
	if err != nil {
		return exp, err
	}
	nbf, err := c.time("nbf")
	if err != nil {
		return exp, err
	}
	iat, err := c.time("iat")
	switch {
	case err != nil:
		return exp, err
	case !exp.IsZero() && !now.Before(exp.Add(leeway)):
		return exp, fmt.Errorf("the token expired at %s", exp.UTC().Format(time.RFC3339))
	case !nbf.IsZero() && now.Add(leeway).Before(nbf):
		return exp, fmt.Errorf("the token is not valid before %s", nbf.UTC().Format(time.RFC3339))
	case !iat.IsZero() && now.Add(max(leeway, time.Minute)).Before(iat):
		return exp, fmt.Errorf("the token was issued at %s, which is in the future", iat.UTC().Format(time.RFC3339))
	case !exp.IsZero():
		exp = exp.Add(leeway)
	}
	return exp, nil
}

// party checks the client in claims: client_id (RFC 9068, 2.2) and azp (OpenID Connect Core 1.0,
// 2) must be the same if both are there, and one of allowed; nil: any client is.
func (c claims) party(allowed []string) error {
	for _, name := range []string{"client_id", "azp"} {
		if v := c[name]; v != nil && c.text(name) == "" {
			return fmt.Errorf("%s is not the name of a client: %T", name, v)
		}
	}
	id, azp := c.text("client_id"), c.text("azp")
	switch {
	case id != "" && azp != "" && id != azp:
		return fmt.Errorf("the token names two clients: client_id %q and azp %q", text.Short(id), text.Short(azp))
	case allowed != nil && !slices.Contains(allowed, cmp.Or(id, azp)):
		return fmt.Errorf("the token belongs to client %q, which is not one of %q", text.Short(cmp.Or(id, azp)), allowed)
	}
	return nil
}

// principal makes a principal from verified claims; its scopes and roles are in the named ones.
// Without an issuer the ID begins with scheme.
func (c claims) principal(scheme, issuer, scopes, roles string, expires time.Time) (*Principal, error) {
	p := &Principal{
		Scheme: scheme, Issuer: issuer, ClientID: c.text("client_id", "azp"), Name: c.text("name", "preferred_username", "username"),
		Scopes: c.scopes(scopes), Roles: texts(c.path(cmp.Or(roles, "roles"))), Expires: expires, Claims: c,
	}
	from := issuer
	if from == "" {
		from = scheme
	}
	sub, ok := c["sub"].(string)
	switch {
	case ok:
		// An issuer has neither a fragment nor a query (RFC 8414, 2), so the first # ends it.
		p.Subject, p.ID = sub, from+"#"+sub
		return p, checkName("sub", sub)
	case c["sub"] == nil && p.ClientID != "": // a client on its own behalf
		p.ID = from + "?client_id=" + p.ClientID
		return p, checkName("client_id", p.ClientID)
	}
	return nil, errors.New("the token has no sub")
}

// includes reports whether any of the audiences is among those wanted.
func includes(audiences, wanted []string) bool {
	for _, a := range audiences {
		for _, w := range wanted {
			if sameResource(a, w) {
				return true
			}
		}
	}
	return false
}

// binding returns the hash of the certificate that a token is bound to; empty: it is bound to
// nothing. A token with another binding, which cannot be checked here, is refused.
//
// Specification: RFC 7800, 3.1; RFC 8705, 3.1.
func (c claims) binding() (string, error) {
	cnf, there := c["cnf"]
	if !there {
		return "", nil
	}
	m, _ := cnf.(map[string]any)
	thumb, ok := m["x5t#S256"].(string)
	if !ok || thumb == "" || len(m) != 1 {
		return "", errors.New("the token is bound to a key in a way that is not supported (such as DPoP)")
	}
	return thumb, nil
}

// checkBinding reports whether a request came over a connection with the certificate.
func checkBinding(r *http.Request, thumb string) error {
	if thumb == "" {
		return nil
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return errors.New("the token is bound to a client certificate, but the request has none")
	}
	sum := sha256.Sum256(r.TLS.PeerCertificates[0].Raw)
	if subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(thumb)) != 1 {
		return errors.New("the token is bound to another client certificate")
	}
	return nil
}
