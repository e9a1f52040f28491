package issuer

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

const (
	maxRegistration = 16 << 10 // bytes of a registration
	maxRedirects    = 10       // redirect URIs of one client
	maxName         = 64       // characters of a client's name that are kept
	maxClientID     = 1000     // bytes; tokens have it as a claim
)

// client is a host. If it has registered itself, its id is this, sealed.
type client struct {
	Name      string   `json:"n,omitempty"`
	Redirects []string `json:"r"`
	Method    string   `json:"m,omitempty"` // empty: none
	Refresh   bool     `json:"f,omitzero"`  // it wants refresh tokens
	Made      int64    `json:"t"`           // in seconds since 1970

	id       string
	document *url.URL // nil: it has registered itself
}

// secret returns the secret of a registered client that has one.
func (s *Server) secret(id string) (string, error) {
	key, err := s.keys.keyFor(forSecret)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// clientOf returns the client of an id: a sealed registration, or the URL of a document.
func (s *Server) clientOf(ctx context.Context, id string) (*client, error) {
	switch {
	case id == "":
		return nil, refuse(invalidRequest, "client_id is missing")
	case len(id) > maxClientID:
		return nil, refuse(invalidClient, "client_id is too long")
	case strings.Contains(id, ":"):
		return s.documents.client(ctx, id)
	}
	c := &client{id: id}
	if err := s.keys.open(forClient, id, c); err != nil {
		return nil, refuse(invalidClient, "this server does not know the client; the host has to register again")
	}
	return c, nil
}

// shown returns the name of the client for people.
func (c *client) shown() string {
	if c.document != nil {
		return c.document.Host
	}
	return c.Name
}

// allows reports whether an answer for the client may be sent to a URI.
func (c *client) allows(redirect string) bool {
	return slices.ContainsFunc(c.Redirects, func(r string) bool { return sameRedirect(r, redirect) })
}

// clientMetadata is what a host says about itself (RFC 7591, 2).
type clientMetadata struct {
	Name      string   `json:"client_name"`
	Redirects []string `json:"redirect_uris"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
	Method    string   `json:"token_endpoint_auth_method"`
}

// check returns the client that metadata describes.
func (s *Server) check(m *clientMetadata) (*client, error) {
	c := &client{Name: shownName(m.Name), Redirects: m.Redirects, Refresh: slices.Contains(m.Grants, grantRefresh), Made: time.Now().Unix()}
	if m.Method != methodNone {
		c.Method = m.Method
	}
	switch {
	case len(m.Redirects) == 0:
		return nil, refuse(invalidRedirect, "redirect_uris is missing")
	case len(m.Redirects) > maxRedirects:
		return nil, refuse(invalidRedirect, "there are more than 10 redirect_uris")
	case m.Grants != nil && !slices.Contains(m.Grants, grantCode):
		return nil, refuse(invalidMetadata, "grant_types must have authorization_code")
	case m.Responses != nil && !slices.Contains(m.Responses, "code"):
		return nil, refuse(invalidMetadata, "response_types must have code")
	}
	for _, raw := range m.Redirects {
		if _, err := s.checkRedirect(raw); err != nil {
			return nil, refuse(invalidRedirect, "the redirect URI "+err.Error())
		}
	}
	return c, nil
}

// shownName returns a name without characters that change how the text around it looks.
func shownName(name string) string {
	var out []rune
	for _, r := range name {
		if unicode.IsGraphic(r) && len(out) < maxName {
			out = append(out, r)
		}
	}
	return strings.TrimSpace(string(out))
}

// register registers a client (RFC 7591, 3). Nothing is kept: the id is the registration.
func (s *Server) register(r *http.Request, body []byte) (int, any, error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return 0, nil, refuse(invalidMetadata, "the Content-Type must be application/json")
	}
	if len(body) > maxRegistration {
		return 0, nil, &fault{status: http.StatusRequestEntityTooLarge, code: invalidMetadata, text: "the registration has more than 16 KiB"}
	}
	var m clientMetadata
	if err := jsonx.Unmarshal(body, &m); err != nil {
		return 0, nil, refuse(invalidMetadata, "the registration is not a JSON object as in RFC 7591")
	}
	if m.Method == "" {
		m.Method = methodBasic // RFC 7591, 2
	}
	if !slices.Contains(methods, m.Method) {
		return 0, nil, refuse(invalidMetadata, "token_endpoint_auth_method "+text.Short(m.Method)+" is not supported; use none, client_secret_basic or client_secret_post")
	}
	c, err := s.check(&m)
	if err != nil {
		return 0, nil, err
	}
	id, err := s.keys.seal(forClient, c)
	if err != nil {
		return 0, nil, err
	}
	if len(id) > maxClientID {
		return 0, nil, refuse(invalidMetadata, "client_name and redirect_uris are too long together; register fewer redirect URIs")
	}
	grants := []string{grantCode}
	if c.Refresh {
		grants = append(grants, grantRefresh)
	}
	answer := map[string]any{
		"client_id": id, "client_id_issued_at": c.Made, "client_name": c.Name, "redirect_uris": c.Redirects,
		"grant_types": grants, "response_types": []string{"code"}, "token_endpoint_auth_method": m.Method,
	}
	if c.Method != "" {
		if answer["client_secret"], err = s.secret(id); err != nil {
			return 0, nil, err
		}
		answer["client_secret_expires_at"] = 0
	}
	return http.StatusCreated, answer, nil
}

// authenticate returns the client of a request to the token endpoint or the revocation endpoint.
func (s *Server) authenticate(r *http.Request, form url.Values) (*client, error) {
	id, secret := form.Get("client_id"), form.Get("client_secret")
	user, password, basic := r.BasicAuth()
	if r.Header.Get("Authorization") != "" && !basic {
		return nil, &fault{status: http.StatusUnauthorized, code: invalidClient, text: "the Authorization header is not Basic", basic: true}
	}
	if basic {
		name, err1 := url.QueryUnescape(user) // RFC 6749, 2.3.1
		pass, err2 := url.QueryUnescape(password)
		if err1 != nil || err2 != nil || secret != "" || id != "" && id != name {
			return nil, &fault{status: http.StatusUnauthorized, code: invalidClient, text: "the client authenticates in two ways, or as two clients", basic: true}
		}
		id, secret = name, pass
	}
	c, err := s.clientOf(r.Context(), id)
	if err != nil {
		f := *faultOf(err)
		if f.code == invalidClient {
			f.status = http.StatusUnauthorized
		}
		f.basic = basic
		return nil, &f
	}
	want := ""
	if c.Method != "" {
		if want, err = s.secret(id); err != nil {
			return nil, err
		}
	}
	if subtle.ConstantTimeCompare([]byte(want), []byte(secret)) != 1 {
		return nil, &fault{status: http.StatusUnauthorized, code: invalidClient, text: "the client secret is wrong, missing, or of a client that has none", basic: basic}
	}
	return c, nil
}
