package main

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/launch"
)

// transport carries the requests to a server, with its stored token if there is one.
func (a *app) transport(s config.Server) (*login.Transport, error) {
	if a.env.Vault == nil {
		_, err := vault.Open("", nil)
		return nil, err
	}
	return a.env.Transport(s)
}

// wantsLogin tells an error that a login would change.
func (a *app) wantsLogin(err error, s *config.Server) bool {
	if s == nil {
		return false
	}
	for _, h := range a.Header {
		if name, _, _ := strings.Cut(h, ":"); strings.EqualFold(strings.TrimSpace(name), "Authorization") {
			return false
		}
	}
	return launch.WantsLogin(err, *s)
}

// loginFor is what a person does about an error that a login would change, or another answer to an input;
// empty: it is another. S is the server before its inputs were answered. An answer that was refused is
// forgotten.
func (a *app) loginFor(s config.Server, err error) (do string, reopen bool) {
	switch {
	case launch.Refused(err) && len(a.answers.Refusable(&s)) > 0:
		a.answers.Unlearn(s)
		return a.byName("ping", s, "-s"), true
	case a.wantsLogin(err, &s):
		return a.byName("login", s), false
	}
	return "", false
}

// byName words a command about a server of the configuration.
func (a *app) byName(verb string, s config.Server, flag ...string) string {
	words := append([]string{"patchbay", verb}, append(flag, s.Name)...)
	if a.Config != "" && s.Source != "" {
		words = append(words, "--config", fileOf(s))
	}
	return shell(words)
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
	s, err := a.env.Resolve(s)
	if err != nil {
		return s, err
	}
	if !launch.CanLogIn(s) {
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

// forgetting words the command that forgets what was given for inputs.
func forgetting(list []config.Input) string {
	words := []string{"patchbay", "config", "inputs", "--forget"}
	for _, in := range list {
		words = append(words, in.ID)
	}
	return shell(words)
}
