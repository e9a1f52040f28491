package main

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/launch"
)

var loginsVerb = verb{
	name: "logins", summary: "List and end the logins of people at a running gateway.",
	examples: []string{"patchbay logins list", "patchbay logins end alice@example.com"},
	minor:    true,
	details:  `For a gateway whose gateway.yaml has login. Your own logins: patchbay whoami.`,
	verbs:    []*verb{&loginsListVerb, &loginsEndVerb},
}

var loginsListVerb = verb{
	name: "list", summary: "List the logins, the newest first.", usage: "",
	examples: []string{"patchbay logins list", "patchbay logins list --json"},
	server:   gatewayServer,
	command:  func() command { return new(loginsListCmd) },
}

type loginsListCmd struct{ steer.Where }

func (c *loginsListCmd) Run(a *app) error {
	to, err := a.gateway(&c.Where, "")
	if err != nil {
		return err
	}
	return to.ShowLogins(a.ctx, a.JSON, func(line string) { a.print(a.shown(line)) }, a.printGrid)
}

var loginsEndVerb = verb{
	name: "end", summary: "End all logins of a person.", usage: "PERSON",
	examples: []string{"patchbay logins end alice@example.com"},
	details: `PERSON is a subject or a name of patchbay logins list, or URL#SUBJECT.
The hosts of the person are refused from now on. The person can log in again,
unless the identity provider or login.require of gateway.yaml prevents that.`,
	server:  gatewayServer,
	command: func() command { return new(loginsEndCmd) },
}

type loginsEndCmd struct {
	Person string `arg:"" help:"Whose logins end."`
	steer.Where
}

func (c *loginsEndCmd) Run(a *app) error {
	to, err := a.gateway(&c.Where, "")
	if err != nil {
		return err
	}
	return to.EndLogins(a.ctx, c.Person, a.JSON, func(line string) { a.print(a.shown(line)) })
}

// transport returns the transport for requests to a server, with its stored token if there is one.
func (a *app) transport(s config.Server) (*login.Transport, error) {
	if a.env.Vault == nil {
		_, err := vault.Open("", nil)
		return nil, err
	}
	return a.env.Transport(s)
}

// wantsLogin reports whether a login would fix an error.
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

// loginFor returns the command that fixes an error by a login or by another answer to an input;
// empty: neither does. The argument s is the server before its inputs were resolved. A refused
// answer is forgotten for this run.
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

// byName returns a command about a server of the configuration.
func (a *app) byName(verb string, s config.Server, flag ...string) string {
	words := append([]string{"patchbay", verb}, append(flag, s.Name)...)
	if a.Config != "" && s.Source != "" {
		words = append(words, "--config", fileOf(s))
	}
	return shell(words)
}

// loggedIn reports whether a login to a server is stored, valid or not.
func (a *app) loggedIn(s config.Server) bool {
	t, err := a.transport(s)
	if err != nil {
		return false
	}
	list, err := t.Logins(a.ctx)
	return err == nil && len(list) > 0
}

// accountNamed returns the server that a verb about logins names.
func (a *app) accountNamed(name string) (config.Server, error) {
	if name != "" {
		if a.Server != "" || a.dashed {
			return config.Server{}, usagef("two servers are given; keep one")
		}
		a.Server = name
	}
	return a.target()
}

// accountOf resolves the inputs of a server, which may be in its URL, and makes it the server of
// this run.
func (a *app) accountOf(s config.Server) (config.Server, error) {
	if s.URL == "" {
		return s, usagef("%s has no URL to log in to", s.Name)
	}
	s, err := a.env.Resolve(s)
	if err != nil {
		return s, err
	}
	if !launch.CanLogIn(s) {
		return s, usagef("%s has its own Authorization header, or uses http, over which tokens are not sent", s.Name).Hint(a.beside("config", "explain", s.Name))
	}
	a.server = &s
	return s, nil
}

// account combines accountNamed and accountOf.
func (a *app) account(name string) (config.Server, error) {
	s, err := a.accountNamed(name)
	if err != nil {
		return s, err
	}
	return a.accountOf(s)
}

// loggedOut returns the error that a login is required.
func (a *app) loggedOut() error {
	f := &fault{Code: exitUnauthorized, Err: errors.New("not logged in to " + a.serverName())}
	return f.Hint(a.beside("login", a.server.Name))
}

// withTLS adds the TLS flags of the command line to a server with a URL. They override the file.
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

// modelTLS returns the TLS configuration for language models; nil: the default. It has no client
// certificate.
func (a *app) modelTLS() (*tls.Config, error) {
	return clientTLS(config.Server{CA: a.ServerCA})
}

// clientTLS returns the TLS configuration for a server; nil: the default.
func clientTLS(s config.Server) (*tls.Config, error) { return tlsfiles.Client(s.CA, s.Cert, s.Key) }

// forgetting returns the command that forgets the answers to inputs.
func forgetting(list []config.Input) string {
	words := []string{"patchbay", "config", "inputs", "--forget"}
	for _, in := range list {
		words = append(words, in.ID)
	}
	return shell(words)
}
