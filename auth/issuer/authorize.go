package issuer

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/text"
)

const (
	maxQuery    = 8 << 10 // bytes of an authorization request
	maxState    = 1024
	maxResource = 512
	askTime     = 10 * time.Minute    // to agree, and then to log in
	agreedTime  = 30 * 24 * time.Hour // that an agreement is remembered
	maxAgreed   = 32                  // agreements of one browser
)

// request is an authorization request of a host that was checked.
type request struct {
	Client    string   `json:"c"`
	Redirect  string   `json:"r"`
	State     string   `json:"s,omitempty"`
	Challenge string   `json:"h"`
	Resource  string   `json:"u"`
	Scopes    []string `json:"o,omitempty"`
	Prompt    string   `json:"p,omitempty"` // for the identity provider
	Refresh   bool     `json:"f,omitzero"`
}

// back is where a person may go after an error, with it in the URL.
type back struct {
	error
	url, host string
}

func (b *back) Unwrap() error { return b.error }

func asBack(err error) (*back, bool) { return errors.AsType[*back](err) }

// backWith adds a link to the host to an error of an authorization request whose redirect URI was
// checked. The person decides to follow it (RFC 9700, 4.11.2).
func (s *Server) backWith(req *request, err error) error {
	u, parseErr := url.Parse(req.Redirect)
	if parseErr != nil {
		return err
	}
	host := u.Host
	if host == "" {
		host = "the app"
	}
	return &back{err, s.answerURL(req, faultOf(err)), host}
}

// answerURL returns the URL that reports an error to the host.
func (s *Server) answerURL(req *request, f *fault) string {
	q := url.Values{"error": {f.code}, "error_description": {plain(f.text)}, "iss": {s.URL}}
	if req.State != "" {
		q.Set("state", req.State)
	}
	return withQuery(req.Redirect, q)
}

// single parses parameters, each of which may occur once (RFC 6749, 3.1 and 3.2).
func single(raw string) (url.Values, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, refuse(invalidRequest, "the parameters cannot be parsed")
	}
	for name, values := range q {
		if len(values) > 1 {
			return nil, refuse(invalidRequest, "the parameter "+text.Short(name)+" occurs more than once")
		}
	}
	return q, nil
}

// authorize begins a login: it checks the request of the host, and asks the person.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) error {
	if len(r.URL.RawQuery) > maxQuery {
		return refuse(invalidRequest, "the request is too long")
	}
	q, err := single(r.URL.RawQuery)
	if err != nil {
		return err
	}
	c, err := s.clientOf(r.Context(), q.Get("client_id"))
	if err != nil {
		return err
	}
	req := &request{Client: c.id, Redirect: q.Get("redirect_uri"), State: q.Get("state"), Challenge: q.Get("code_challenge"), Refresh: c.Refresh}
	if req.Redirect == "" {
		return refuse(invalidRequest, "redirect_uri is missing")
	}
	if _, err := s.checkRedirect(req.Redirect); err != nil {
		return refuse(invalidRequest, "the redirect URI "+err.Error())
	}
	if !c.allows(req.Redirect) {
		return refuse(invalidRequest, "the redirect URI "+text.Short(req.Redirect)+" is not one that the program has registered")
	}
	if err := s.readRequest(req, q); err != nil {
		return s.backWith(req, err)
	}
	if q.Get("prompt") != "consent" && isHTTPS(req.Redirect) && s.agreed(r, req) {
		return s.toProvider(w, r, req)
	}
	browser := s.cookie(r, browserCookie)
	if len(browser) != len(random()) {
		browser = random()
	}
	form, err := s.keys.seal(forConsent, consentForm{*req, browser, time.Now().Add(askTime).Unix()})
	if err != nil {
		return err
	}
	s.setCookie(w, browserCookie, browser, agreedTime)
	s.consentPage(w, req, c, form)
	return nil
}

// readRequest reads the parameters that matter only once the redirect URI was checked.
func (s *Server) readRequest(req *request, q url.Values) (err error) {
	if len(req.State) > maxState {
		req.State = ""
		return refuse(invalidRequest, "state is too long")
	}
	switch mode := q.Get("response_mode"); {
	case q.Get("response_type") != "code":
		return refuse("unsupported_response_type", "response_type must be code")
	case mode != "" && mode != "query":
		return refuse(invalidRequest, "response_mode must be query")
	case q.Has("request") || q.Has("request_uri"):
		return refuse("request_not_supported", "request objects are not supported")
	case req.Challenge == "":
		return refuse(invalidRequest, "code_challenge is missing: the program must use PKCE")
	case q.Get("code_challenge_method") != "S256":
		return refuse(invalidRequest, "code_challenge_method must be S256")
	}
	if sum, err := base64.RawURLEncoding.DecodeString(req.Challenge); err != nil || len(sum) != sha256.Size {
		return refuse(invalidRequest, "code_challenge is not a SHA-256 in base64url")
	}
	if req.Resource, err = s.target(q.Get("resource")); err != nil {
		return err
	}
	req.Scopes = s.grantable(q.Get("scope"))
	for prompt := range strings.FieldsSeq(q.Get("prompt")) {
		switch prompt {
		case "none":
			return refuse("interaction_required", "this server cannot log a person in without a page")
		case "login", "select_account":
			req.Prompt = prompt
		}
	}
	return nil
}

// target returns the resource that a token shall be for: the one of the Server, one below it, or one of
// Resources.
//
// Specification: RFC 8707, 2; 2026-07-28, basic/authorization, Resource Parameter Implementation.
func (s *Server) target(raw string) (string, error) {
	if raw == "" {
		return s.resource, nil
	}
	no := refuse(invalidTarget, "the resource "+text.Short(raw)+" is not "+s.resource)
	u, err := url.Parse(raw)
	if err != nil || len(raw) > maxResource || u.User != nil || u.Fragment != "" || u.RawQuery != "" || u.Opaque != "" || hasDots(u.Path) {
		return "", no
	}
	uri := strings.TrimSuffix(oauth.Canonical(u), "/")
	if !slices.Contains(s.further, uri) && uri != s.resource && !strings.HasPrefix(uri, strings.TrimSuffix(s.resource, "/")+"/") {
		return "", no
	}
	return uri, nil
}

// grantable returns the requested scopes that the Server has; all of them if none was requested.
func (s *Server) grantable(requested string) (scopes []string) {
	asked := oauth.ParseScopes(requested)
	if len(asked) == 0 {
		return s.Scopes
	}
	for _, scope := range s.Scopes {
		if slices.Contains(asked, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// consentForm is what the consent page sends back.
type consentForm struct {
	Request request `json:"r"`
	Browser string  `json:"b"`
	Until   int64   `json:"t"`
}

// consent takes the answer of the person.
func (s *Server) consent(w http.ResponseWriter, r *http.Request) error {
	if err := s.origin.Check(r); err != nil {
		return &fault{status: http.StatusForbidden, code: accessDenied, text: "the form was sent by a page of another site"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		return refuse(invalidRequest, "the form cannot be read")
	}
	var form consentForm
	browser := s.cookie(r, browserCookie)
	switch err := s.keys.open(forConsent, r.PostForm.Get("request"), &form); {
	case err != nil:
		return refuse(invalidRequest, "the form was not made by this server, or before its keys changed; begin the login again in your program")
	case browser == "" || subtle.ConstantTimeCompare([]byte(browser), []byte(form.Browser)) != 1:
		return &fault{status: http.StatusForbidden, code: accessDenied, text: "the form belongs to another browser, or this one keeps no cookies; begin the login again in your program"}
	case time.Now().Unix() > form.Until:
		return refuse(invalidRequest, "the page was open for more than 10 minutes; begin the login again in your program")
	}
	req := &form.Request
	switch r.PostForm.Get("answer") {
	case "agree":
	case "cancel":
		no := refuse(accessDenied, "the person did not agree")
		s.refused(r, req.Client, no)
		http.Redirect(w, r, s.answerURL(req, no), http.StatusSeeOther)
		return nil
	default:
		return refuse(invalidRequest, "the form has no answer")
	}
	if isHTTPS(req.Redirect) {
		s.remember(w, r, req)
	}
	return s.toProvider(w, r, req)
}

// agreement is a client and a redirect URI, with what it got, that a browser has agreed to.
type agreement struct {
	What  []byte `json:"w"`
	Until int64  `json:"t"`
}

// hashOf identifies what a person agrees to.
func hashOf(req *request) []byte {
	sum := sha256.Sum256([]byte(strings.Join([]string{req.Client, req.Redirect, req.Resource, strings.Join(req.Scopes, " ")}, "\n")))
	return sum[:16]
}

// agreements returns those in the cookie that are in force.
func (s *Server) agreements(r *http.Request) (list []agreement) {
	if s.keys.open(forAgreed, s.cookie(r, agreedCookie), &list) != nil {
		return nil
	}
	now := time.Now().Unix()
	return slices.DeleteFunc(list, func(a agreement) bool { return a.Until <= now })
}

// agreed reports whether the browser has agreed to the same before.
func (s *Server) agreed(r *http.Request, req *request) bool {
	what := hashOf(req)
	return slices.ContainsFunc(s.agreements(r), func(a agreement) bool { return subtle.ConstantTimeCompare(a.What, what) == 1 })
}

// remember adds an agreement to the cookie.
func (s *Server) remember(w http.ResponseWriter, r *http.Request, req *request) {
	what := hashOf(req)
	list := slices.DeleteFunc(s.agreements(r), func(a agreement) bool { return slices.Equal(a.What, what) })
	list = append(list, agreement{what, time.Now().Add(agreedTime).Unix()})
	value, err := s.keys.seal(forAgreed, list[max(0, len(list)-maxAgreed):])
	if err == nil && len(value) <= maxCookie { // else the person is asked again
		s.setCookie(w, agreedCookie, value, agreedTime)
	}
}
