// Package protect has the flags that decide how callers reach a server over HTTP, and which of them
// may use it.
package protect

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/httpapi"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	httpguard "github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Flags has the flags that decide how callers reach a server over HTTP, and which of them may
// use it.
type Flags struct {
	SSE      bool     `name:"sse" help:"Also serve HTTP+SSE, as in 2024-11-05, at /sse."`
	API      bool     `name:"api" help:"Also serve tools to callers without MCP, at /api."`
	Auth     []string `name:"auth" sep:"none" placeholder:"SPEC" help:"Authenticate callers (repeatable): patchbay help auth."`
	Scopes   []string `name:"auth-scope" placeholder:"SCOPE" help:"Require this scope of callers (repeatable)."`
	Resource string   `name:"auth-resource" placeholder:"URL" help:"URL of the server for clients [the address]."`
	Insecure bool     `name:"insecure-no-auth" help:"Allow other machines without authentication."`
	TLSCert  string   `name:"tls-cert" placeholder:"FILE" help:"Serve HTTPS with this certificate (PEM with chain)."`
	TLSKey   string   `name:"tls-key" placeholder:"FILE" help:"Key of the certificate; default: in the same file."`
	ClientCA string   `name:"client-ca" placeholder:"FILE" help:"Accept client certificates signed by this CA (PEM)."`
	Hosts    []string `name:"allow-host" placeholder:"NAME" help:"Accept this host name, of a proxy (repeatable)."`
	Origins  []string `name:"allow-origin" placeholder:"URL" help:"Accept web pages of http://HOST:PORT (repeatable)."`
	Limits

	// Login makes the authorization server that the member login of gateway.yaml describes: for the
	// resource, else for the URL in login, else for the address, and for the administration if there is
	// one; nil if it has none of them. Nil: there is no login.
	Login func(resource, address, admin string, scopes []string, logger *slog.Logger) *issuer.Server `flag:"-"`

	// Admin is the URL of the administration for people who log in. Empty: they cannot use it, or there
	// is no login.
	Admin string `flag:"-"`

	// Explain adds the place in gateway.yaml to an error of that server. Nil: it is not added.
	Explain func(err error) error `flag:"-"`

	Log    string `name:"log" placeholder:"FILE" help:"Append a JSON line for each request; -: to stderr."`
	Audit  string `name:"audit" placeholder:"FILE" help:"Keep an audit log of calls in this file."`
	Record string `name:"record" placeholder:"DIR" help:"Keep frames of 7 days here, redacted, at most 1 GiB."`
}

// Limits has the flag for rate limits of callers.
type Limits struct {
	Limit []string `name:"limit" sep:"none" placeholder:"SPEC" help:"Rate limit (repeatable): patchbay help limits."`
}

// Scheme returns the start of the server's URLs.
func (p *Flags) Scheme() string {
	if p.TLSCert != "" {
		return "https://"
	}
	return "http://"
}

// Shared reports whether callers from other machines may be admitted.
func (p *Flags) Shared() bool { return p.Insecure || p.Knows() }

// Knows reports whether callers must authenticate. TLS alone does not require that.
func (p *Flags) Knows() bool { return len(p.Auth) > 0 || p.Login != nil || p.ClientCA != "" }

// Check refuses flags that do not fit together, and over stdio those that need HTTP.
func (p *Flags) Check(stdio bool) error {
	switch {
	case stdio && p.SSE:
		return advice.Usagef("--sse needs HTTP: it serves clients of 2024-11-05 that connect to an address").Hint("--http 127.0.0.1:7420")
	case stdio && p.API:
		return advice.Usagef("--api needs HTTP: it serves callers without MCP").Hint("--http 127.0.0.1:7420")
	case stdio && len(p.Auth) > 0:
		return advice.Usagef("--auth needs HTTP; over stdio the caller is the user who starts the program").Hint("--http 127.0.0.1:7420")
	case stdio && (len(p.Scopes) > 0 || p.Resource != "" || p.Insecure):
		return advice.Usagef("--auth-scope, --auth-resource and --insecure-no-auth need HTTP; over stdio the caller is the user who starts the program").Hint("--http 127.0.0.1:7420")
	case stdio && p.TLSCert+p.TLSKey+p.ClientCA != "":
		return advice.Usagef("--tls-cert, --tls-key and --client-ca need HTTP; stdio stays on this machine").Hint("--http 127.0.0.1:7420")
	case p.TLSCert == "" && p.TLSKey+p.ClientCA != "":
		return advice.Usagef("--tls-key and --client-ca need --tls-cert").Hint("--tls-cert FILE")
	case stdio && len(p.Hosts)+len(p.Origins) > 0:
		return advice.Usagef("--allow-host and --allow-origin need HTTP; web pages and proxies cannot reach stdio").Hint("--http 127.0.0.1:7420")
	case len(p.Auth) == 0 && p.Login == nil && p.ClientCA != "" && len(p.Scopes) > 0:
		return advice.Usagef("--auth-scope admits nobody: certificates have no scopes").Hint("patchbay help auth")
	}
	for _, name := range p.Hosts {
		if err := (&httpguard.Guard{AllowedHosts: []string{name}}).Check(); err != nil {
			return advice.Usagef("--allow-host: %v", err).Hint("--allow-host mcp.example.com")
		}
	}
	for _, origin := range p.Origins {
		if err := (&httpguard.Guard{AllowedOrigins: []string{origin}}).Check(); err != nil {
			return advice.Usagef("--allow-origin: %v", err).Hint("--allow-origin http://localhost:6274")
		}
	}
	return nil
}

// Admit sets the host names and origins that a server accepts.
func (p *Flags) Admit(srv *mcp.Server, talk *terminal.Talk) {
	srv.HTTP.AllowedHosts = append(srv.HTTP.AllowedHosts, p.Hosts...)
	srv.HTTP.AllowedOrigins = append(srv.HTTP.AllowedOrigins, p.Origins...)
	if slices.Contains(p.Origins, "*") && !p.Knows() {
		talk.Always("patchbay: warning: any web page in a browser here can use the server, without authentication")
	}
}

// ServeAPI serves an API at an endpoint if --api is given.
func (p *Flags) ServeAPI(e *listen.Endpoint, api *httpapi.API) {
	if p.API {
		api.On(e)
	}
}

// Secure reads the files for TLS; nil without --tls-cert.
func (p *Flags) Secure(logger *slog.Logger) (*tlsfiles.Server, error) {
	if p.TLSCert == "" {
		return nil, nil
	}
	f, err := tlsfiles.Open(p.TLSCert, p.TLSKey, p.ClientCA, logger)
	if err != nil {
		return nil, advice.Usagef("--tls-cert: %w", err).Hint("patchbay help auth")
	}
	return f, nil
}

// People returns the authorization server for hosts of a server at an address; nil without the member
// login of gateway.yaml.
func (p *Flags) People(at net.Addr, logger *slog.Logger) (*issuer.Server, error) {
	if p.Login == nil {
		return nil, nil
	}
	s := p.Login(p.Resource, p.address(at), p.Admin, p.Scopes, logger)
	if s == nil {
		return nil, advice.Usagef("login: hosts need the URL of the server, which %s does not tell", at).Hint("add url: https://mcp.example.com to login in gateway.yaml")
	}
	if err := s.Check(); err != nil {
		if p.Explain != nil {
			err = p.Explain(err)
		}
		return nil, advice.Usagef("%w", err)
	}
	return s, nil
}

// address returns the URL of a server at an address; empty: the address has no host.
func (p *Flags) address(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		return p.Scheme() + at.String() + listen.Path
	}
	return ""
}

// Guard returns the authentication for a server at an address; nil without --auth, login and a client
// CA. The authorization server is that of People.
func (p *Flags) Guard(at net.Addr, login *issuer.Server, logger *slog.Logger) (*auth.Guard, error) {
	if !p.Knows() {
		if len(p.Scopes) > 0 || p.Resource != "" {
			return nil, advice.Usagef("--auth-scope and --auth-resource need --auth").Hint("patchbay help auth")
		}
		return nil, nil
	}
	g := &auth.Guard{Scopes: p.Scopes, Realm: "patchbay", Logger: logger}
	if p.ClientCA != "" {
		g.Verifiers = append(g.Verifiers, &auth.MTLS{})
	}
	remote := false      // whether callers log in elsewhere
	var open []*auth.JWT // signed here, for no audience yet
	unnamed := false     // whether tokens are for no audience yet
	for _, text := range p.Auth {
		v, err := listen.Verifier(text, logger)
		if err != nil {
			return nil, advice.Usagef("--auth %s: %v", text, err).Hint("patchbay help auth")
		}
		switch v := v.(type) {
		case *auth.JWT:
			remote, unnamed = remote || v.Secret == "", unnamed || v.Audience == nil
			if v.Secret != "" && v.Audience == nil {
				open = append(open, v)
			}
		case *auth.Introspection:
			remote, unnamed = true, unnamed || v.Audience == nil
		}
		g.Verifiers = append(g.Verifiers, v)
	}
	resource, address := p.Resource, p.address(at)
	if login != nil {
		g.Verifiers = append(g.Verifiers, login.Verifier())
		resource = login.Resource
	}
	if resource == "" && remote {
		resource = address
	}
	switch {
	case resource != "":
		g.Resource = &auth.ResourceMetadata{Resource: resource, Name: "patchbay"}
	case unnamed && address != "": // the tokens are made by hand: metadata would lead clients to no login
		for _, v := range open {
			v.Audience = []string{address}
		}
	case unnamed:
		return nil, advice.Usagef("--auth: tokens need the URL of the server, which %s does not tell", at).Hint("--auth-resource https://mcp.example.com/mcp")
	}
	if err := g.Check(); err != nil {
		f := advice.Usagef("--auth: %s", strings.TrimPrefix(err.Error(), "auth: Guard: ")).Hint("patchbay help auth")
		if errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "APIKeys") {
			f.Next = "patchbay token key NAME --file FILE makes a key and the file"
		}
		return nil, f
	}
	return g, nil
}

// AdminGuard returns the authentication for the administration, beside an endpoint with a guard and an
// authorization server. Tokens of that server must be for the administration: the hosts of a person, whose
// tokens are for the endpoint, cannot use it. Other credentials are those of the endpoint. Nil: there is
// no login, so the guard of the endpoint is enough.
func (p *Flags) AdminGuard(guard *auth.Guard, login *issuer.Server, logger *slog.Logger) (*auth.Guard, error) {
	if guard == nil || login == nil || p.Admin == "" {
		return nil, nil
	}
	g := &auth.Guard{Verifiers: slices.Clone(guard.Verifiers), Resource: &auth.ResourceMetadata{Resource: p.Admin, Name: "patchbay administration"}, Scopes: p.Scopes, Realm: guard.Realm, Logger: logger}
	first := len(guard.Verifiers) - 1 - len(p.Auth) // of --auth; the last is that of the login
	for i, text := range p.Auth {
		v, err := listen.Verifier(text, logger)
		if err != nil {
			return nil, advice.Usagef("--auth %s: %v", text, err).Hint("patchbay help auth")
		}
		both := []string{guard.Resource.Resource, p.Admin}
		switch v := v.(type) {
		case *auth.JWT:
			if v.Audience == nil {
				v.Audience = both
				g.Verifiers[first+i] = v
			}
		case *auth.Introspection:
			if v.Audience == nil {
				v.Audience = both
				g.Verifiers[first+i] = v
			}
		}
	}
	if err := g.Check(); err != nil {
		return nil, advice.Usagef("login: %s", strings.TrimPrefix(err.Error(), "auth: Guard: ")).Hint("add adminURL: https://admin.example.com to login in gateway.yaml")
	}
	return g, nil
}
