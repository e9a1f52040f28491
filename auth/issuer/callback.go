package issuer

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// login is a login in progress, as the cookie of the browser has it.
type login struct {
	Request  request `json:"r"`
	State    string  `json:"s"`
	Nonce    string  `json:"n"`
	Verifier string  `json:"v"`
	Until    int64   `json:"t"`
}

// toProvider sends the browser to the identity provider.
func (s *Server) toProvider(w http.ResponseWriter, r *http.Request, req *request) error {
	m, err := s.provider.metadata(r.Context())
	if err != nil {
		return s.backWith(req, &fault{
			status: http.StatusBadGateway, code: unavailable, cause: err,
			text: "the identity provider " + s.provider.host() + " cannot be used at the moment; the log of this server says why",
		})
	}
	l := login{*req, random(), random(), random(), time.Now().Add(askTime).Unix()}
	value, err := s.keys.seal(forLogin, l)
	if err != nil {
		return err
	}
	if len(value) > maxCookie {
		return s.backWith(req, refuse(invalidRequest, "the request of the program is too long: shorten its state or its redirect URI"))
	}
	s.setCookie(w, loginName(l.State), value, askTime)
	sum := sha256.Sum256([]byte(l.Verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {s.Provider.ClientID}, "redirect_uri": {s.CallbackURL()}, "scope": {s.provider.scope()},
		"state": {l.State}, "nonce": {l.Nonce}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	if req.Prompt != "" {
		q.Set("prompt", req.Prompt)
	}
	http.Redirect(w, r, withQuery(m.Authorize, q), http.StatusSeeOther)
	return nil
}

// callback takes the answer of the identity provider, and sends a code to the host.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) error {
	if len(r.URL.RawQuery) > 4*maxQuery {
		return refuse(invalidRequest, "the answer of the identity provider is too long")
	}
	q, err := single(r.URL.RawQuery)
	if err != nil {
		return err
	}
	state := q.Get("state")
	var l login
	switch {
	case state == "":
		return refuse(invalidRequest, "the answer of the identity provider has no state")
	case s.keys.open(forLogin, s.cookie(r, loginName(state)), &l) != nil || subtle.ConstantTimeCompare([]byte(l.State), []byte(state)) != 1:
		return &fault{status: http.StatusForbidden, code: accessDenied, text: "this browser has not begun this login, or has finished it; begin it again in your program"}
	}
	s.setCookie(w, loginName(state), "", -1)
	if time.Now().Unix() > l.Until {
		return refuse(invalidRequest, "the login took more than 10 minutes; begin it again in your program")
	}
	g, err := s.finish(r, &l, q)
	if err != nil {
		f, ok := errors.AsType[*fault](err)
		if !ok {
			f = refuse(serverError, "the identity provider "+s.provider.host()+" cannot be used; the log of this server says why")
		}
		s.failed("login at the identity provider failed", err, "client", r.RemoteAddr)
		s.refused(r, l.Request.Client, f)
		http.Redirect(w, r, s.answerURL(&l.Request, f), http.StatusSeeOther)
		return nil
	}
	code := ""
	if err = s.sessions.begin(g.Session, &g.Person); err == nil {
		code, err = s.codes.add(g)
	}
	if err != nil {
		s.failed("login not kept", err, "client", r.RemoteAddr)
		s.refused(r, l.Request.Client, err)
		http.Redirect(w, r, s.answerURL(&l.Request, faultOf(err)), http.StatusSeeOther)
		return nil
	}
	if s.Logger != nil {
		s.Logger.Info("person logged in", "subject", text.Short(g.Person.Subject), "client", shownClient(g.Client), "resource", g.Resource)
	}
	answer := url.Values{"code": {code}, "iss": {s.URL}}
	if l.Request.State != "" {
		answer.Set("state", l.Request.State)
	}
	http.Redirect(w, r, withQuery(l.Request.Redirect, answer), http.StatusSeeOther)
	return nil
}

// shownClient returns a client id for the log: a URL, or the beginning of a sealed registration.
func shownClient(id string) string {
	if strings.Contains(id, ":") {
		return text.Short(id)
	}
	return text.Clip(id, 16)
}

// finish checks the answer of the identity provider and returns what the host gets.
func (s *Server) finish(r *http.Request, l *login, q url.Values) (*grant, error) {
	m, err := s.provider.metadata(r.Context())
	if err != nil {
		return nil, err
	}
	iss, named := q.Get("iss"), q.Has("iss")
	switch code := q.Get("error"); {
	case named && iss != s.Provider.Issuer:
		return nil, refuse(accessDenied, "the answer comes from another identity provider, "+text.Short(iss))
	case !named && m.Named:
		return nil, refuse(accessDenied, "the answer does not say which identity provider it comes from")
	case code == accessDenied:
		return nil, refuse(accessDenied, "the identity provider refused: "+text.Short(strings.TrimSpace(code+" "+q.Get("error_description"))))
	case code != "":
		return nil, refuse(serverError, "the identity provider refused: "+text.Short(strings.TrimSpace(code+" "+q.Get("error_description"))))
	case q.Get("code") == "":
		return nil, refuse(serverError, "the answer of the identity provider has no code")
	}
	who, err := s.provider.person(r.Context(), m, q.Get("code"), l)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &grant{
		Client: l.Request.Client, Redirect: l.Request.Redirect, Challenge: l.Request.Challenge, Resource: l.Request.Resource, Scopes: l.Request.Scopes,
		Refresh: l.Request.Refresh, Person: *who, Session: s.newSession(), Ends: now.Add(s.SessionLife), until: now.Add(codeLife),
	}, nil
}
