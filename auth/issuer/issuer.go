package issuer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Server is an authorization server for the hosts of one MCP server. URL, Resource and Provider are
// required. It is an http.Handler for its own paths, which [Server.Handle] adds to a mux. No field
// may change after the first use.
type Server struct {
	// URL is the issuer of the tokens, as hosts reach it: https, or http on loopback, without query
	// and fragment, and without a slash at the end. Its paths are below it.
	URL string

	// Resource is the URI of the MCP server, as in auth.ResourceMetadata. A token may also be for a
	// URI below it.
	Resource string

	// Resources are further URIs that tokens may be for, each alone, such as that of an API for
	// administrators. A host names the one it wants (RFC 8707); a token for one of them is refused
	// at all others.
	Resources []string

	// Name is that of the MCP server for people. Empty: the host of Resource.
	Name string

	// Provider is where people log in.
	Provider Provider

	// Scopes are those that hosts may get. Without scopes in its request, a host gets all of them.
	Scopes []string

	// Claims are the claims of the identity provider that tokens have, such as "groups". Nil:
	// name, email, preferred_username, roles and groups. An email that the provider says is not
	// verified is left out.
	Claims []string

	// Require are claims that a person must have to log in, each with the allowed values: {"hd":
	// {"example.com"}}. A claim that is a list needs one of them. Nil: everybody whom the identity
	// provider logs in. The claims are read when the person logs in. A Server with another Require
	// ends the logins that Dir has kept.
	Require map[string][]string

	// Schemes are the schemes of redirect URIs of apps, such as "cursor". The specification has
	// https and loopback alone; nil: only those.
	Schemes []string

	// Dir is a folder for keys and the state of logins, which a restart keeps. It is made if it does
	// not exist. One Server uses it until Close: for another one, the error of Check is ErrInUse, and
	// names the folder and the process. Empty: they are in memory, and a restart ends all logins.
	Dir string

	// State makes one Server of those with the same URL in several processes, the nodes of a cluster: keys, logins and codes are
	// in it, and a login is known, and ends, at each. It may lose them when all nodes have ended; Dir, a folder
	// of each process, keeps keys and logins then too. A Server that is cut off from the others refuses to log in and to refresh,
	// and learns later which logins have ended. Nil: this Server is alone.
	State cluster.State

	// TokenLife is how long an access token is valid. Zero: 10 minutes; at most an hour.
	TokenLife time.Duration

	// SessionLife is how long a host may refresh its token before the person has to log in again.
	// Zero: 12 hours; at most 90 days. A person who is removed at the identity provider keeps
	// access for that long.
	SessionLife time.Duration

	// Base sends the requests to the identity provider and for documents of clients, and decides
	// which addresses may be connected to. Nil: connections of its own, whose addresses are checked.
	Base http.RoundTripper

	// Logger gets logins, and the reasons of failed ones, without tokens; a second has at most 8
	// lines of failures. If nil, nothing is logged.
	Logger *slog.Logger

	// OnLogin is called for each login that is done, refused or ended early, for an audit log. A client
	// can cause any number of refused ones. It may be called by several goroutines at once, and must
	// not block.
	OnLogin func(Event)

	once      sync.Once
	fault     error // of the fields
	site      *url.URL
	origin    http.CrossOriginProtection
	resource  string   // canonical
	further   []string // Resources, canonical
	rules     string   // digest of Require
	release   func()   // ends the use of Dir
	shared    *shared  // in State; nil: nothing
	unfollow  func()   // ends the watch of State; nil: there is none
	metadata  []byte
	claims    []string
	keys      *ring
	sessions  *sessions
	codes     *codes
	documents *documents
	provider  *provider
	quiet     quiet
}

// Provider is an identity provider with OpenID Connect, and the client that is registered there.
type Provider struct {
	Issuer   string      // as its metadata spells it
	ClientID string      // of the client with the redirect URI of [Server.CallbackURL]
	Secret   auth.Secret // of the client; empty: it has none, and PKCE alone protects the code
	Scopes   []string    // to ask for; nil: openid, profile and email. The scope openid is always among them
}

// Bounds of the fields, and their defaults.
const (
	defaultTokenLife   = 10 * time.Minute
	maxTokenLife       = time.Hour
	defaultSessionLife = 12 * time.Hour
	maxSessionLife     = 90 * 24 * time.Hour
	minLife            = time.Second
)

var defaultClaims = []string{"name", "email", "preferred_username", "roles", "groups"}

// ownClaims are the claims that the Server itself makes.
var ownClaims = []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "client_id", "azp", "scope", "scp", "cnf", "act", "may_act", "sid", "idp", "nonce"}

// Paths below the URL.
const (
	authorizePath = "/oauth/authorize"
	consentPath   = "/oauth/consent"
	callbackPath  = "/oauth/callback"
	tokenPath     = "/oauth/token"
	registerPath  = "/oauth/register"
	revokePath    = "/oauth/revoke"
	keysPath      = "/oauth/keys"
)

// Check returns what is wrong with the fields and with the folder. A Server with such an error
// answers all requests with 500.
func (s *Server) Check() error {
	s.once.Do(func() {
		if err := s.prepare(); err != nil {
			_ = s.end()
			s.fault = fmt.Errorf("issuer: %w", err)
		}
	})
	return s.fault
}

// Close ends the use of Dir, which another Server can use then. This one must not be used after it.
func (s *Server) Close() error {
	s.once.Do(func() { s.fault = errors.New("issuer: the Server is closed") })
	return s.end()
}

func (s *Server) end() error {
	if s.unfollow != nil {
		s.unfollow()
	}
	if s.release != nil {
		s.release()
	}
	return nil
}

func (s *Server) prepare() error {
	u, err := ownURL(s.URL)
	if err != nil {
		return fmt.Errorf("the URL %w", err)
	}
	if strings.HasSuffix(s.URL, "/") {
		return fmt.Errorf("the URL %q must not end with a slash", text.Short(s.URL))
	}
	s.site = u
	resource, err := ownURL(s.Resource)
	if err != nil {
		return fmt.Errorf("the Resource %w", err)
	}
	s.resource = oauth.Canonical(resource)
	for _, raw := range s.Resources {
		u, err := ownURL(raw)
		if err != nil {
			return fmt.Errorf("one of the Resources %w", err)
		}
		s.further = append(s.further, oauth.Canonical(u))
	}
	if s.Name == "" {
		s.Name = resource.Host
	}
	if err := s.Provider.check(); err != nil {
		return err
	}
	if s.TokenLife, err = life("TokenLife", s.TokenLife, defaultTokenLife, maxTokenLife); err != nil {
		return err
	}
	if s.SessionLife, err = life("SessionLife", s.SessionLife, defaultSessionLife, maxSessionLife); err != nil {
		return err
	}
	for _, scope := range s.Scopes {
		if !oauth.IsScope(scope) || scope == oauth.OfflineAccess {
			return fmt.Errorf("%q is not a scope of a server", text.Short(scope))
		}
	}
	if s.claims = s.Claims; s.claims == nil {
		s.claims = defaultClaims
	}
	for _, name := range s.claims {
		if name == "" || slices.Contains(ownClaims, name) {
			return fmt.Errorf("the claim %q cannot be copied: the tokens have one of their own", text.Short(name))
		}
	}
	for name, values := range s.Require {
		if name == "" || len(values) == 0 {
			return fmt.Errorf("the required claim %q has no allowed values", text.Short(name))
		}
	}
	for _, scheme := range s.Schemes {
		if !isAppScheme(scheme) {
			return fmt.Errorf("%q is not a scheme of an app", text.Short(scheme))
		}
	}
	if err := s.origin.AddTrustedOrigin(strings.ToLower(u.Scheme + "://" + u.Host)); err != nil {
		return err
	}
	if s.rules, err = digestOf(s.Require); err != nil {
		return err
	}
	if s.Dir != "" {
		if s.release, err = hold(s.Dir); err != nil {
			return err
		}
	}
	s.shared = newShared(s.State, s.URL)
	if s.keys, err = openRing(s.Dir, s.TokenLife, s.shared); err != nil {
		return err
	}
	if s.sessions, err = openSessions(s.Dir, s.shared); err != nil {
		return err
	}
	s.codes, s.documents, s.provider = newCodes(s.shared), newDocuments(s), newProvider(s)
	if s.metadata, err = s.describe(); err == nil && s.shared != nil {
		s.unfollow, err = s.follow()
	}
	return err
}

// ownURL parses a URL of the program's own.
func ownURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", text.Short(raw))
	}
	if u, err = oauth.CheckURL(raw, u); err == nil && (u.RawQuery != "" || u.ForceQuery) {
		err = fmt.Errorf("%q must not have a query", text.Short(raw))
	}
	return u, err
}

func life(name string, d, standard, most time.Duration) (time.Duration, error) {
	switch {
	case d == 0:
		return standard, nil
	case d < minLife || d > most:
		return 0, fmt.Errorf("%s is %v; use %v to %v", name, d, minLife, most)
	}
	return d, nil
}

// CallbackURL returns the redirect URI to register at the identity provider.
func (s *Server) CallbackURL() string { return s.URL + callbackPath }

// Verifier returns a verifier of the Server's tokens for an auth.Guard whose Resource is that of the
// Server, or below it, or one of Resources. It reads the keys in this process. A token of a login that
// has ended early is refused at once: one that was revoked or ended by EndLogins, whose code or refresh
// token was used twice, or of a person who was admitted by another Require.
func (s *Server) Verifier() *auth.JWT {
	return &auth.JWT{Issuer: s.URL, KeysURL: s.URL + keysPath, Algorithms: []string{"ES256"}, Base: ownKeys{s}, Logger: s.Logger, Refuse: s.refuse}
}

// refuse refuses the tokens of a login that is over.
func (s *Server) refuse(p *auth.Principal) error {
	id, _ := p.Claims["sid"].(string)
	switch {
	case s.sessions.over(id):
		return errors.New("the login of the token has ended")
	case !s.current(id):
		return errors.New("the login of the token was made when Require was another one")
	}
	return nil
}

// ownKeys answers requests for the keys of a Server in this process.
type ownKeys struct{ s *Server }

func (k ownKeys) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := k.s.Check(); err != nil {
		return nil, err
	}
	set, err := k.s.keys.public()
	if err != nil {
		return nil, err
	}
	return reply(r, set), nil
}

// metadataPaths returns the paths of the Server's metadata: those of RFC 8414 and of OpenID Connect
// Discovery.
func (s *Server) metadataPaths() (paths []string) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil
	}
	for _, place := range oauth.IssuerPlaces(u) {
		paths = append(paths, place.Path)
	}
	return paths
}

// Handle adds the paths of the Server to a mux, such as an http.ServeMux.
func (s *Server) Handle(mux interface {
	Handle(pattern string, h http.Handler)
}) {
	for _, path := range s.metadataPaths() {
		mux.Handle(path, s)
	}
	if u, err := url.Parse(s.URL); err == nil {
		mux.Handle(u.Path+"/oauth/", s)
	}
}

// ServeHTTP answers the requests of hosts and of browsers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.Check(); err != nil {
		s.failed("requests are refused because of the configuration", err)
		writeError(w, &fault{status: http.StatusInternalServerError, code: serverError, text: "the server is not configured; its log says why"})
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), oauth.Timeout+10*time.Second)
	defer stop()
	r = r.WithContext(ctx)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	path, own := strings.CutPrefix(r.URL.Path, s.site.Path)
	switch {
	case slices.Contains(s.metadataPaths(), r.URL.Path):
		s.document(w, r, s.metadata)
	case !own:
		http.NotFound(w, r)
	case path == authorizePath:
		s.page(w, r, http.MethodGet, s.authorize)
	case path == consentPath:
		s.page(w, r, http.MethodPost, s.consent)
	case path == callbackPath:
		s.page(w, r, http.MethodGet, s.callback)
	case path == keysPath:
		set, err := s.keys.public()
		if err != nil {
			s.failed("keys cannot be read", err)
			writeError(w, &fault{status: http.StatusInternalServerError, code: serverError, text: "the keys cannot be read"})
			return
		}
		s.document(w, r, set)
	case path == tokenPath:
		s.endpoint(w, r, s.token)
	case path == registerPath:
		s.endpoint(w, r, s.register)
	case path == revokePath:
		s.endpoint(w, r, s.revoke)
	default:
		http.NotFound(w, r)
	}
}

// quiet bounds the lines of a log.
type quiet struct {
	mu    sync.Mutex
	since time.Time // guarded by mu
	lines int       // since then; guarded by mu
	more  int       // that were left out; guarded by mu
}

const maxLines = 8 // within a second

// pass reports whether a line may be written, and how many were left out before it.
func (q *quiet) pass(now time.Time) (more int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.since) >= time.Second {
		q.since, q.lines = now, 0
	}
	if q.lines == maxLines {
		q.more++
		return 0, false
	}
	q.lines++
	more, q.more = q.more, 0
	return more, true
}

// failed logs a failure.
func (s *Server) failed(what string, err error, more ...any) {
	if s.Logger == nil {
		return
	}
	if left, ok := s.quiet.pass(time.Now()); ok {
		s.Logger.Warn(what, append(more, "err", err, "more", left)...)
	}
}
