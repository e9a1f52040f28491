package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// token is an access token, bound to the authorization server that issued it. It never prints
// itself.
type token struct {
	access  string
	refresh string // empty: none was given
	from    *place
	as      *identity
	asked   []string // scopes asked for so far, of this authorization server
	got     time.Time
	login   bool      // it came from a login, not from a refresh
	adopted bool      // it came from the store, by a login or a refresh of any process
	stale   time.Time // when to refresh; zero: not known
	expires time.Time // zero: not known
	granted []string  // scopes; nil: as asked

	accepted atomic.Bool // by the server, once at least
	unsaved  atomic.Bool // the Store did not take it
	spent    atomic.Bool // the refresh token is not valid any more
}

func (*token) String() string       { return "[redacted]" }
func (*token) GoString() string     { return "[redacted]" }
func (*token) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// refreshable reports whether there is a refresh token, so that a new token needs no user.
func (k *token) refreshable() bool { return k != nil && k.refresh != "" && !k.spent.Load() }

// freshness is how long a token counts as new. If the server has refused a new token and never
// accepted it, it would refuse another one too.
const freshness = time.Minute

// unwanted reports whether a token is new and was never accepted. If the server refuses it, age is
// not the reason.
func (k *token) unwanted() bool {
	return !k.adopted && !k.accepted.Load() && time.Since(k.got) < freshness
}

// refreshMargin is how long before its end a token is refreshed, at most.
const refreshMargin = 10 * time.Second

// request asks a token endpoint for a token. Values that the answer leaves out are taken from old,
// the previous token, which may be nil.
//
// Specification: OAuth 2.1, 3.2; RFC 8707, 2.2; RFC 9449, 5.
func (t *Transport) request(ctx context.Context, p *place, id *identity, form url.Values, old *token) (*token, error) {
	form.Set("resource", p.resource)
	start := time.Now()
	answer, err := t.ask(ctx, t.fetch.Fetcher, p.token, p, id, form)
	if err != nil {
		return nil, err
	}
	var r struct {
		Access  string          `json:"access_token"`
		Type    string          `json:"token_type"`
		Expires json.RawMessage `json:"expires_in"`
		Refresh string          `json:"refresh_token"`
		Scope   string          `json:"scope"`
	}
	if jsonx.Unmarshal(answer, &r) != nil || !oauth.IsHeaderToken(r.Access) { // its text may hold a token
		return nil, errors.New("the answer has no access token")
	}
	if scheme := p.scheme(); !strings.EqualFold(r.Type, scheme) {
		return nil, fmt.Errorf("the token has type %q, not %s as requested", text.Short(r.Type), scheme)
	}
	k := &token{access: r.Access, refresh: r.Refresh, from: p, as: id, got: start, granted: oauth.ParseScopes(r.Scope)}
	if old != nil {
		k.asked = old.asked
		if k.refresh == "" {
			k.refresh = old.refresh
		}
		if k.granted == nil {
			k.granted = old.granted
		}
	}
	if s := seconds(r.Expires); s > 0 {
		life := time.Duration(s * float64(time.Second))
		k.expires = start.Add(life)
		k.stale = staleFrom(start, k.expires)
	}
	return k, nil
}

// ask posts a form to an endpoint of an authorization server, with the credentials of the client,
// and returns the answer. A refusal is an error, a [*RefusedError].
func (t *Transport) ask(ctx context.Context, f *oauth.Fetcher, u *url.URL, p *place, id *identity, form url.Values) ([]byte, error) {
	for again := false; ; again = true {
		h := oauth.FormHeader()
		if err := authenticate(p, id, form, h); err != nil {
			return nil, err
		}
		if p.bound {
			proof, err := t.prover.proof(http.MethodPost, u, "")
			if err != nil {
				return nil, err
			}
			h.Set(schemeDPoP, proof)
		}
		answer, err := f.Post(ctx, u, h, []byte(form.Encode()))
		if err != nil {
			return nil, err
		}
		fresh := p.bound && t.prover.learn(u, answer.Header)
		if answer.Status/100 == 2 {
			return answer.Body, nil
		}
		e := refusal(answer)
		if e.Code == useNonce && fresh && !again {
			continue
		}
		if e.Code == "invalid_client" {
			t.forget(p.issuer, id)
		}
		return nil, e
	}
}

// authenticate adds the credentials of the client to a request.
func authenticate(p *place, id *identity, form url.Values, h http.Header) error {
	method := id.method
	if id.Key != nil { // a stored login does not say so
		method = methodKey
	}
	switch method {
	case methodBasic:
		oauth.SetBasic(h, id.ID, id.Secret)
		return nil
	case methodPost:
		form.Set("client_secret", id.Secret)
	case methodKey:
		if id.Key == nil {
			return fmt.Errorf("the key of client %q is missing; return it from Registered", text.Short(id.ID))
		}
		if a := p.meta.TokenAlgorithms; a != nil && !slices.Contains(a, string(id.Key.algorithm)) {
			return fmt.Errorf("it accepts client signatures with %q, but the key signs with %s", text.Short(strings.Join(a, " ")), id.Key.algorithm)
		}
		assertion, err := id.Key.assert(id.ID, p.issuer)
		if err != nil {
			return err
		}
		form.Set("client_assertion_type", assertionKind)
		form.Set("client_assertion", assertion)
	}
	if id.ID != "" {
		form.Set("client_id", id.ID)
	}
	return nil
}

// staleFrom returns the time from which a token is refreshed before it is used.
func staleFrom(got, expires time.Time) time.Time {
	return expires.Add(-min(refreshMargin, expires.Sub(got)/2))
}

// aged reports whether it is time to refresh a token.
func (k *token) aged() bool { return !k.stale.IsZero() && time.Now().After(k.stale) }

// seconds reads a number of seconds, written as a number or, by some servers, as a string. Zero:
// it is neither, or not positive.
func seconds(raw json.RawMessage) float64 {
	s, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || !(s > 0) {
		return 0
	}
	return min(s, math.MaxInt64/float64(time.Second)/2)
}
