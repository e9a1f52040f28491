package main

import (
	"errors"
	"io/fs"
	"net"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	httpguard "github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/mcp"
)

// protection has the flags that decide how callers reach a server over HTTP, and which of them may
// use it.
type protection struct {
	SSE      bool     `name:"sse" help:"Also serve HTTP+SSE, as in 2024-11-05, at /sse."`
	Auth     []string `name:"auth" sep:"none" placeholder:"SPEC" help:"Authenticate callers (repeatable): patchbay help auth."`
	Scopes   []string `name:"auth-scope" placeholder:"SCOPE" help:"Require this scope of callers (repeatable)."`
	Resource string   `name:"auth-resource" placeholder:"URL" help:"URL of the server for clients [the address]."`
	Insecure bool     `name:"insecure-no-auth" help:"Allow other machines without authentication."`
	TLSCert  string   `name:"tls-cert" placeholder:"FILE" help:"Serve HTTPS with this certificate (PEM with chain)."`
	TLSKey   string   `name:"tls-key" placeholder:"FILE" help:"Key of the certificate; default: in the same file."`
	ClientCA string   `name:"client-ca" placeholder:"FILE" help:"Accept client certificates signed by this CA (PEM)."`
	Hosts    []string `name:"allow-host" placeholder:"NAME" help:"Accept this host name, of a proxy (repeatable)."`
	Origins  []string `name:"allow-origin" placeholder:"URL" help:"Accept web pages of http://HOST:PORT (repeatable)."`
	limits
	Log    string `name:"log" placeholder:"FILE" help:"Append a JSON line for each request; -: to stderr."`
	Audit  string `name:"audit" placeholder:"FILE" help:"Keep an audit log of calls in this file."`
	Record string `name:"record" placeholder:"DIR" help:"Keep frames of 7 days here, redacted, at most 1 GiB."`
}

// limits has the flag for rate limits of callers.
type limits struct {
	Limit []string `name:"limit" sep:"none" placeholder:"SPEC" help:"Rate limit (repeatable): patchbay help limits."`
}

// scheme returns the start of the server's URLs.
func (p *protection) scheme() string {
	if p.TLSCert != "" {
		return "https://"
	}
	return "http://"
}

// shared reports whether callers from other machines may be admitted.
func (p *protection) shared() bool { return p.Insecure || p.knows() }

// knows reports whether callers must authenticate. TLS alone does not require that.
func (p *protection) knows() bool { return len(p.Auth) > 0 || p.ClientCA != "" }

// check refuses flags that do not fit together, and over stdio those that need HTTP.
func (p *protection) check(stdio bool) error {
	switch {
	case stdio && p.SSE:
		return usagef("--sse needs HTTP: it serves clients of 2024-11-05 that connect to an address").hint("--http 127.0.0.1:7420")
	case stdio && len(p.Auth) > 0:
		return usagef("--auth needs HTTP; over stdio the caller is the user who starts the program").hint("--http 127.0.0.1:7420")
	case stdio && (len(p.Scopes) > 0 || p.Resource != "" || p.Insecure):
		return usagef("--auth-scope, --auth-resource and --insecure-no-auth need HTTP; over stdio the caller is the user who starts the program").hint("--http 127.0.0.1:7420")
	case stdio && p.TLSCert+p.TLSKey+p.ClientCA != "":
		return usagef("--tls-cert, --tls-key and --client-ca need HTTP; stdio stays on this machine").hint("--http 127.0.0.1:7420")
	case p.TLSCert == "" && p.TLSKey+p.ClientCA != "":
		return usagef("--tls-key and --client-ca need --tls-cert").hint("--tls-cert FILE")
	case stdio && len(p.Hosts)+len(p.Origins) > 0:
		return usagef("--allow-host and --allow-origin need HTTP; web pages and proxies cannot reach stdio").hint("--http 127.0.0.1:7420")
	case len(p.Auth) == 0 && p.ClientCA != "" && len(p.Scopes) > 0:
		return usagef("--auth-scope admits nobody: certificates have no scopes").hint("patchbay help auth")
	}
	for _, name := range p.Hosts {
		if err := (&httpguard.Guard{AllowedHosts: []string{name}}).Check(); err != nil {
			return usagef("--allow-host: %v", err).hint("--allow-host mcp.example.com")
		}
	}
	for _, origin := range p.Origins {
		if err := (&httpguard.Guard{AllowedOrigins: []string{origin}}).Check(); err != nil {
			return usagef("--allow-origin: %v", err).hint("--allow-origin http://localhost:6274")
		}
	}
	return nil
}

// admit sets the host names and origins that a server accepts.
func (p *protection) admit(a *app, srv *mcp.Server) {
	srv.HTTP.AllowedHosts = append(srv.HTTP.AllowedHosts, p.Hosts...)
	srv.HTTP.AllowedOrigins = append(srv.HTTP.AllowedOrigins, p.Origins...)
	if slices.Contains(p.Origins, "*") && !p.knows() {
		a.talk.Always("patchbay: warning: any web page in a browser here can use the server, without authentication")
	}
}

// secure reads the files for TLS; nil without --tls-cert.
func (p *protection) secure(a *app) (*tlsfiles.Server, error) {
	if p.TLSCert == "" {
		return nil, nil
	}
	f, err := tlsfiles.Open(p.TLSCert, p.TLSKey, p.ClientCA, a.logger())
	if err != nil {
		return nil, usagef("--tls-cert: %w", err).hint("patchbay help auth")
	}
	return f, nil
}

// guard returns the authentication for a server at an address; nil without --auth and a client CA.
func (p *protection) guard(a *app, at net.Addr) (*auth.Guard, error) {
	if !p.knows() {
		if len(p.Scopes) > 0 || p.Resource != "" {
			return nil, usagef("--auth-scope and --auth-resource need --auth").hint("patchbay help auth")
		}
		return nil, nil
	}
	g := &auth.Guard{Scopes: p.Scopes, Realm: "patchbay", Logger: a.logger()}
	if p.ClientCA != "" {
		g.Verifiers = append(g.Verifiers, &auth.MTLS{})
	}
	remote := false      // whether callers log in elsewhere
	var open []*auth.JWT // signed here, for no audience yet
	unnamed := false     // whether tokens are for no audience yet
	for _, text := range p.Auth {
		v, err := listen.Verifier(text, a.logger())
		if err != nil {
			return nil, usagef("--auth %s: %v", text, err).hint("patchbay help auth")
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
	resource, address := p.Resource, ""
	if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		address = p.scheme() + at.String() + listen.Path
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
		return nil, usagef("--auth: tokens need the URL of the server, which %s does not tell", at).hint("--auth-resource https://mcp.example.com/mcp")
	}
	if err := g.Check(); err != nil {
		f := usagef("--auth: %s", strings.TrimPrefix(err.Error(), "auth: Guard: ")).hint("patchbay help auth")
		if errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "APIKeys") {
			f.next = "patchbay token key NAME --file FILE makes a key and the file"
		}
		return nil, f
	}
	return g, nil
}

// chain makes the middlewares that the flags of a server ask for.
func (p *protection) chain(a *app, g governed, overHTTP bool) (*chain.Chain, error) {
	return a.chain(chain.Config{Log: p.Log, Limits: p.Limit, Policy: g.Policy, Audit: p.Audit, HTTP: overHTTP})
}

// chain makes middlewares. It closes them when the program ends.
func (a *app) chain(c chain.Config) (*chain.Chain, error) {
	c.File = a.deployed
	made, err := chain.New(c, a.program())
	if err != nil {
		return nil, chainFault(err)
	}
	a.atEnd = slices.Insert(a.atEnd, 0, made.Close)
	return made, nil
}

// program returns what package chain needs of this run.
func (a *app) program() chain.Program {
	return chain.Program{Talk: a.talk, Logger: a.logger(), Lines: talkLines{a.talk}, Wire: a.wire, Version: Version, Redactor: a.secrets.Redactor()}
}

// chainFault explains an error of package chain.
func chainFault(err error) error {
	var of *chain.Error
	if !errors.As(err, &of) {
		return err
	}
	f := (&fault{err: of.Err}).hint(of.Next)
	if of.Usage {
		f.code = exitUsage
	}
	return f
}

// inFront puts a chain in front of the server of a gateway over stdio.
func (a *app) inFront(srv *mcp.Server, made *chain.Chain) error {
	mw, err := made.Front()
	srv.Use(mw...)
	return chainFault(err)
}
