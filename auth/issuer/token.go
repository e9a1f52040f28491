package issuer

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

const (
	codeLife = time.Minute
	codeKept = 10 * time.Minute // so that a second use is noticed
	maxCodes = 10_000
)

// grant is what a person has granted to a host.
type grant struct {
	Client    string    `json:"c"`
	Redirect  string    `json:"-"`
	Challenge string    `json:"-"`
	Resource  string    `json:"u"`
	Scopes    []string  `json:"o,omitempty"`
	Refresh   bool      `json:"-"`
	Person    person    `json:"p"`
	Session   string    `json:"s"`
	Ends      time.Time `json:"t"`

	until time.Time // of the code
	used  bool      // the code was presented
}

// refreshToken is the content of a refresh token.
type refreshToken struct {
	Grant      grant `json:"g"`
	Generation int   `json:"n"`
}

// codes has the codes that were made a while ago.
type codes struct {
	shared *shared // has the grants of codes; nil: they are in list

	mu   sync.Mutex
	list map[string]*grant // of the codes made here; guarded by mu
}

func newCodes(common *shared) *codes { return &codes{shared: common, list: map[string]*grant{}} }

// sharedGrant is a grant with all its members.
type sharedGrant struct {
	grant
	Redirect  string    `json:"redirect"`
	Challenge string    `json:"challenge"`
	Refresh   bool      `json:"refresh"`
	Until     time.Time `json:"until"`
	Used      bool      `json:"used,omitzero"`
}

// add keeps a grant and returns its code.
func (c *codes) add(g *grant) (string, error) {
	code := random()
	if err := c.keep(code, g); err != nil || c.shared == nil {
		return code, err
	}
	raw, err := jsonx.Marshal(sharedGrant{*g, g.Redirect, g.Challenge, g.Refresh, g.until, false})
	if err != nil {
		return "", err
	}
	return code, c.shared.change(keyOfCode(code), func([]byte) ([]byte, time.Duration) { return raw, codeLife + codeKept })
}

func (c *codes) keep(code string, g *grant) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) >= maxCodes/2 {
		for code, g := range c.list {
			if time.Since(g.until) > codeKept {
				delete(c.list, code)
			}
		}
	}
	if len(c.list) >= maxCodes {
		return &fault{status: http.StatusServiceUnavailable, code: unavailable, text: "too many people log in at the moment; try again"}
	}
	c.list[code] = g
	return nil
}

func keyOfCode(code string) string {
	sum := sha256.Sum256([]byte(code))
	return ofCode + hex.EncodeToString(sum[:16])
}

// take returns the grant of a code, nil if there is none; again says that it was taken before.
func (c *codes) take(code string) (g *grant, again bool, err error) {
	if c.shared == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if g = c.list[code]; g != nil {
			again, g.used = g.used, true
		}
		return g, again, nil
	}
	err = c.shared.change(keyOfCode(code), func(raw []byte) ([]byte, time.Duration) {
		var kept sharedGrant
		if g = nil; raw == nil || jsonx.Unmarshal(raw, &kept) != nil {
			return nil, 0
		}
		g = &kept.grant
		g.Redirect, g.Challenge, g.Refresh, g.until = kept.Redirect, kept.Challenge, kept.Refresh, kept.Until
		if again = kept.Used; again {
			return nil, 0
		}
		kept.Used = true
		raw, _ = jsonx.Marshal(kept) // as it was read
		return raw, max(time.Second, time.Until(kept.Until)+codeKept)
	})
	return g, again, err
}

// formOf parses a form, in which each parameter may occur once.
func formOf(r *http.Request, body []byte) (url.Values, error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/x-www-form-urlencoded" {
		return nil, refuse(invalidRequest, "the Content-Type must be application/x-www-form-urlencoded")
	}
	return single(string(body))
}

// token answers a request to the token endpoint.
func (s *Server) token(r *http.Request, body []byte) (int, any, error) {
	form, err := formOf(r, body)
	if err != nil {
		return 0, nil, err
	}
	c, err := s.authenticate(r, form)
	if err != nil {
		return 0, nil, err
	}
	var answer any
	switch form.Get("grant_type") {
	case grantCode:
		if answer, err = s.exchange(r, c, form); err != nil {
			s.refused(r, c.id, err)
		}
	case grantRefresh:
		answer, err = s.refresh(r, c, form)
	case "":
		err = refuse(invalidRequest, "grant_type is missing")
	default:
		err = refuse(unsupportedType, "grant_type must be authorization_code or refresh_token")
	}
	return http.StatusOK, answer, err
}

// exchange exchanges a code. The first attempt uses the code up, whatever comes of it.
func (s *Server) exchange(r *http.Request, c *client, form url.Values) (any, error) {
	g, again, err := s.codes.take(form.Get("code"))
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		return nil, refuse(invalidGrant, "the code is not valid")
	case again:
		// RFC 6749, 4.1.2: the tokens of the first use end too.
		ended, err := s.sessions.end(g.Session, g.Ends)
		s.ended(r, g.Client, ended, "its code was used twice")
		return nil, errors.Join(refuse(invalidGrant, "the code was used before, so the login has ended; log in again"), err)
	case time.Now().After(g.until):
		return nil, refuse(invalidGrant, "the code has expired")
	case g.Client != c.id:
		return nil, refuse(invalidGrant, "the code belongs to another client")
	case form.Has("redirect_uri") && form.Get("redirect_uri") != g.Redirect:
		return nil, refuse(invalidGrant, "redirect_uri is not that of the authorization request")
	}
	verifier := form.Get("code_verifier")
	sum := sha256.Sum256([]byte(verifier))
	switch {
	case verifier == "":
		return nil, refuse(invalidGrant, "code_verifier is missing")
	case len(verifier) < 43 || len(verifier) > 128 || subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(g.Challenge)) != 1:
		return nil, refuse(invalidGrant, "code_verifier does not match the code_challenge")
	}
	if err := s.sameTarget(g, form); err != nil {
		return nil, err
	}
	until := g.Ends
	if !g.Refresh {
		until = s.expiry(g, time.Now())
	}
	if err := s.sessions.extend(g.Session, c.shown(), until); err != nil {
		return nil, err
	}
	answer, err := s.issue(g, g.Scopes, 0)
	if err == nil {
		s.tell(r, Event{State: EventDone, Login: Login{g.Person.Subject, g.Person.Name, c.shown(), time.Now(), until}, Client: c.id})
	}
	return answer, err
}

// sameTarget checks the resource of a token request.
func (s *Server) sameTarget(g *grant, form url.Values) error {
	if !form.Has("resource") {
		return nil
	}
	uri, err := s.target(form.Get("resource"))
	if err == nil && uri != g.Resource {
		err = refuse(invalidTarget, "the person has granted access to "+g.Resource+" alone")
	}
	return err
}

// refresh exchanges a refresh token for an access token and the next refresh token.
func (s *Server) refresh(r *http.Request, c *client, form url.Values) (any, error) {
	var t refreshToken
	if err := s.keys.open(forRefresh, form.Get("refresh_token"), &t); err != nil {
		return nil, refuse(invalidGrant, "the refresh token is not valid")
	}
	g := &t.Grant
	g.Refresh = true
	if g.Client != c.id {
		return nil, refuse(invalidGrant, "the refresh token belongs to another client")
	}
	if err := s.sameTarget(g, form); err != nil {
		return nil, err
	}
	scopes := g.Scopes
	if asked := oauth.ParseScopes(form.Get("scope")); len(asked) > 0 {
		scopes = nil
		for _, scope := range asked {
			switch {
			case slices.Contains(g.Scopes, scope):
				scopes = append(scopes, scope)
			case scope != oauth.OfflineAccess:
				return nil, refuse("invalid_scope", "the person has not granted the scope "+scope)
			}
		}
	}
	if !s.current(g.Session) {
		return nil, refuse(invalidGrant, "who may log in here was decided anew, so the login has ended; log in again")
	}
	if ended, err := s.sessions.advance(g.Session, t.Generation); err != nil {
		s.ended(r, c.id, ended, "a refresh token was used twice")
		if errors.Is(err, errReused) {
			s.failed("refresh token used twice: the login has ended", errReused, "subject", g.Person.Subject)
		}
		return nil, err
	}
	return s.issue(g, scopes, t.Generation+1)
}

// expiry returns when an access token expires that is made now.
func (s *Server) expiry(g *grant, now time.Time) time.Time {
	if expires := now.Add(s.TokenLife); expires.Before(g.Ends) {
		return expires
	}
	return g.Ends
}

// issue makes the tokens of a grant (RFC 9068).
func (s *Server) issue(g *grant, scopes []string, generation int) (any, error) {
	now := time.Now()
	expires := s.expiry(g, now)
	claims := map[string]any{}
	maps.Copy(claims, g.Person.Claims)
	maps.Copy(claims, map[string]any{
		"iss": s.URL, "sub": g.Person.Subject, "aud": g.Resource, "iat": now.Unix(), "exp": expires.Unix(), "jti": random()[:22],
		"client_id": g.Client, "sid": g.Session, "idp": s.Provider.Issuer,
	})
	scope := strings.Join(scopes, " ")
	if scope != "" {
		claims["scope"] = scope
	}
	access, err := s.keys.sign(claims)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(expires.Sub(now) / time.Second)}
	if scope != "" {
		answer["scope"] = scope
	}
	if g.Refresh {
		if answer["refresh_token"], err = s.keys.seal(forRefresh, refreshToken{*g, generation}); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// revoke ends the login of a token (RFC 7009). An unknown token is not an error.
func (s *Server) revoke(r *http.Request, body []byte) (int, any, error) {
	form, err := formOf(r, body)
	if err != nil {
		return 0, nil, err
	}
	c, err := s.authenticate(r, form)
	if err != nil {
		return 0, nil, err
	}
	token := form.Get("token")
	if token == "" {
		return 0, nil, refuse(invalidRequest, "token is missing")
	}
	var t refreshToken
	if s.keys.open(forRefresh, token, &t) == nil {
		if t.Grant.Client == c.id {
			err = s.revoked(r, c, t.Grant.Session, t.Grant.Ends)
		}
		return http.StatusOK, nil, err
	}
	if claims, bad := s.keys.claimsOf(token); bad == nil && claims["client_id"] == c.id {
		if id, _ := claims["sid"].(string); id != "" {
			err = s.revoked(r, c, id, time.Now().Add(s.SessionLife))
		}
	}
	return http.StatusOK, nil, err
}

// revoked ends a login that its host has ended.
func (s *Server) revoked(r *http.Request, c *client, id string, until time.Time) error {
	ended, err := s.sessions.end(id, until)
	s.ended(r, c.id, ended, "the host has logged out")
	return err
}
