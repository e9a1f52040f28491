package main

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/mcp"
)

// logins are the stored tokens as the servers of this run use them: silently. Who has to log
// in is told so, by the error or at the terminal. The zero value is ready.
type logins struct {
	mu         sync.Mutex
	transports map[carried]*login.Transport // guarded by mu
}

// carried is what a transport is for: a URL, and how it is reached.
type carried struct{ url, ca, cert, key string }

// refreshGrace is how long the end of the program may wait for a refresh that was begun.
const refreshGrace = 3 * time.Second

// canLogInAt tells whether tokens may be sent to a server: over https, or within this machine,
// and if its own settings have none.
func canLogInAt(s config.Server) bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return false
		}
	}
	u, err := url.Parse(s.URL)
	if s.URL == "" || err != nil || u.User != nil || u.Fragment != "" || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// transport carries the requests to a server, with its stored token if there is one.
func (a *app) transport(s config.Server) (*login.Transport, error) {
	a.logins.mu.Lock()
	defer a.logins.mu.Unlock()
	at := carried{s.URL, s.CA, s.Cert, s.Key}
	if t := a.logins.transports[at]; t != nil {
		return t, nil
	}
	secure, err := clientTLS(s)
	if err != nil {
		return nil, err
	}
	store, err := vault.Open("", nil)
	if err != nil {
		return nil, err
	}
	t := &login.Transport{Server: s.URL, Store: a.secrets.Store(store), ClientName: "Patchbay", TLS: secure}
	if a.logins.transports == nil {
		a.logins.transports = map[carried]*login.Transport{}
	}
	a.logins.transports[at] = t
	return t, nil
}

// settle waits for refreshes: the end of the program would lose what comes of them.
func (a *app) settle() {
	a.logins.mu.Lock()
	defer a.logins.mu.Unlock()
	if len(a.logins.transports) == 0 {
		return
	}
	within(refreshGrace, func() {
		for _, t := range a.logins.transports {
			t.Settle()
		}
	})
}

// carry has a client reach a server as its settings say, and send stored tokens.
func (a *app) carry(c *mcp.Client, s config.Server) error {
	if canLogInAt(s) && c.Header.Get("Authorization") == "" {
		if t, err := a.transport(s); err == nil { // without a place for tokens there are none
			c.HTTPClient = &http.Client{Transport: t}
			return nil
		}
	}
	secure, err := clientTLS(s)
	if secure != nil {
		c.HTTPClient = &http.Client{Transport: tlsfiles.Transport(secure)}
	}
	return err
}

// wantsLogin tells an error that a login would change.
func (a *app) wantsLogin(err error, s *config.Server) bool {
	var status *mcp.HTTPError
	if s == nil || !errors.As(err, &status) || status.Status != http.StatusUnauthorized {
		return false
	}
	for _, h := range a.Header {
		if name, _, _ := strings.Cut(h, ":"); strings.EqualFold(strings.TrimSpace(name), "Authorization") {
			return false
		}
	}
	if wants := status.Header.Get("WWW-Authenticate"); wants != "" && !strings.Contains(strings.ToLower(wants), "bearer") {
		return false
	}
	return canLogInAt(*s)
}

// loggedIn tells whether a login at a server is stored, be it of use or not.
func (a *app) loggedIn(s config.Server) bool {
	t, err := a.transport(s)
	if err != nil {
		return false
	}
	list, err := t.Logins(a.ctx)
	return err == nil && len(list) > 0
}

// accountNamed finds the server that a verb about logins names.
func (a *app) accountNamed(name string) (config.Server, error) {
	if name != "" {
		if a.Server != "" || a.dashed {
			return config.Server{}, usagef("the server is named twice; keep one")
		}
		a.Server = name
	}
	return a.target()
}

// accountOf resolves a server, so that its URL counts, and makes it that of this run.
func (a *app) accountOf(s config.Server) (config.Server, error) {
	if s.URL == "" {
		return s, usagef("%s is no server with a URL: there is nothing to log in at", s.Name)
	}
	s, err := a.resolve(s)
	if err != nil {
		return s, err
	}
	s = a.withTLS(s)
	if !canLogInAt(s) {
		return s, usagef("%s has an Authorization of its own, or is reached by http, where tokens are not sent", s.Name).hint(a.beside("config", "explain", s.Name))
	}
	a.server = &s
	return s, nil
}

// account does both.
func (a *app) account(name string) (config.Server, error) {
	s, err := a.accountNamed(name)
	if err != nil {
		return s, err
	}
	return a.accountOf(s)
}

// loggedOut says that somebody has to log in.
func (a *app) loggedOut() error {
	f := &fault{code: exitUnauthorized, err: errors.New("nobody is logged in at " + a.serverName())}
	return f.hint(a.beside("login", a.server.Name))
}

// withTLS adds to a server with a URL what the command line says about how it is known and
// shown who we are. The command line goes before the file.
func (a *app) withTLS(s config.Server) config.Server {
	if s.URL == "" {
		return s
	}
	if a.ServerCA != "" {
		s.CA = a.ServerCA
	}
	if a.ClientCert != "" {
		s.Cert, s.Key = a.ClientCert, a.ClientKey
	}
	return s
}

// modelTLS is how connections to language models are secured; nil: as usual. They are shown no
// certificate.
func (a *app) modelTLS() (*tls.Config, error) {
	return clientTLS(config.Server{CA: a.ServerCA})
}

// clientTLS is how connections to a server are secured; nil: as usual.
func clientTLS(s config.Server) (*tls.Config, error) { return tlsfiles.Client(s.CA, s.Cert, s.Key) }
