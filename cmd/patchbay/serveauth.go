package main

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	httpguard "github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/mcp"
)

// protection says who may use a server over HTTP.
type protection struct {
	Auth     []string `name:"auth" sep:"none" placeholder:"SPEC" help:"Let in whom this knows (repeatable): patchbay help auth."`
	Scopes   []string `name:"auth-scope" placeholder:"SCOPE" help:"Let in only who has this scope (repeatable)."`
	Resource string   `name:"auth-resource" placeholder:"URL" help:"How clients reach the server; default: the address."`
	Insecure bool     `name:"insecure-no-auth" help:"Serve where others can reach it, unauthenticated."`
	TLSCert  string   `name:"tls-cert" placeholder:"FILE" help:"Serve HTTPS with this certificate (PEM, with its chain)."`
	TLSKey   string   `name:"tls-key" placeholder:"FILE" help:"Its key; default: in the same file."`
	ClientCA string   `name:"client-ca" placeholder:"FILE" help:"Let in whose certificate this authority (PEM) has signed."`
	Hosts    []string `name:"allow-host" placeholder:"NAME" help:"Its name at a proxy in front (repeatable)."`
	Origins  []string `name:"allow-origin" placeholder:"URL" help:"Let in web pages of http://HOST:PORT (repeatable)."`
	limits
}

// helpAuth tells what --auth takes.
const helpAuth = `Who is calling, by --auth of serve, up and bridge; the first that knows decides

  apikeys:FILE                 API keys; patchbay token key adds them to FILE
  basic:FILE                   users with passwords, as htpasswd -B and patchbay
                               token password write them
  hmac:env:NAME | hmac:FILE    JWTs signed with a secret; patchbay token jwt makes some
  jwt:ISSUER                   access tokens of an authorization server
  introspect:ISSUER            tokens that the authorization server is asked about

Further, with commas: issuer=, audience=, keys=FILE|URL, algorithm=, azp=CLIENT, leeway=30s,
roles=CLAIM (hmac, jwt), url=, client=ID, secret=env:NAME|FILE, ttl=30s
(introspect). Tokens must be for the address of the server, or the URL of
--auth-resource, or audience=. --client-ca FILE lets in who shows a certificate
of that authority, by its URI, host name, mail address or distinguished name.
Over plain HTTP everybody on the way reads credentials: off this machine use
--tls-cert FILE --tls-key FILE, or put a proxy with TLS in front. These files
are read again when they change.
`

// scheme begins the URLs of the server.
func (p *protection) scheme() string {
	if p.TLSCert != "" {
		return "https://"
	}
	return "http://"
}

// shared tells whether others than this machine may be let in.
func (p *protection) shared() bool { return p.Insecure || p.knows() }

// knows tells whether callers have to be known. TLS alone knows nobody.
func (p *protection) knows() bool { return len(p.Auth) > 0 || p.ClientCA != "" }

// check refuses flags that make no sense together. Over stdio none does.
func (p *protection) check(stdio bool) error {
	switch {
	case stdio && len(p.Auth) > 0:
		return usagef("--auth is for HTTP; over stdio the caller is whoever started the program").hint("--http 127.0.0.1:7420")
	case stdio && p.TLSCert+p.TLSKey+p.ClientCA != "":
		return usagef("--tls-cert, --tls-key and --client-ca are for HTTP; stdio stays on this machine").hint("--http 127.0.0.1:7420")
	case p.TLSCert == "" && p.TLSKey+p.ClientCA != "":
		return usagef("--tls-key and --client-ca need the certificate of the server").hint("--tls-cert FILE")
	case stdio && len(p.Hosts)+len(p.Origins) > 0:
		return usagef("--allow-host and --allow-origin are for HTTP; no web page and no proxy reaches stdio").hint("--http 127.0.0.1:7420")
	case len(p.Auth) == 0 && p.ClientCA != "" && len(p.Scopes) > 0:
		return usagef("--auth-scope lets in nobody: certificates have no scopes").hint("patchbay help auth")
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

// admit tells a server under which names it is reached, and which pages may use it.
func (p *protection) admit(a *app, srv *mcp.Server) {
	srv.HTTP.AllowedHosts = append(srv.HTTP.AllowedHosts, p.Hosts...)
	srv.HTTP.AllowedOrigins = append(srv.HTTP.AllowedOrigins, p.Origins...)
	if slices.Contains(p.Origins, "*") && !p.knows() {
		a.talk.always("patchbay: warning: every web page that is open in a browser here can use the server, without authentication")
	}
}

// secure reads the files for TLS; nil without --tls-cert.
func (p *protection) secure(a *app) (*tlsFiles, error) {
	if p.TLSCert == "" {
		return nil, nil
	}
	f, err := newTLSFiles(p.TLSCert, p.TLSKey, p.ClientCA, a.logger())
	if err != nil {
		return nil, usagef("TLS: %w", err)
	}
	return f, nil
}

// guard makes what stands in front of a server at an address; nil without --auth.
func (p *protection) guard(a *app, at net.Addr) (*auth.Guard, error) {
	if !p.knows() {
		if len(p.Scopes) > 0 || p.Resource != "" {
			return nil, usagef("--auth-scope and --auth-resource say more about --auth, which is missing").hint("patchbay help auth")
		}
		return nil, nil
	}
	g := &auth.Guard{Scopes: p.Scopes, Realm: "patchbay", Logger: a.logger()}
	if p.ClientCA != "" {
		g.Verifiers = append(g.Verifiers, &auth.MTLS{})
	}
	remote, own := false, true // who has tokens; whether each says whom they are for
	for _, text := range p.Auth {
		v, err := a.verifier(text)
		if err != nil {
			return nil, usagef("--auth %s: %v", text, err).hint("patchbay help auth")
		}
		switch v := v.(type) {
		case *auth.JWT:
			remote, own = remote || v.Secret == "", own && (v.Secret != "" || v.Audience != nil)
		case *auth.Introspection:
			remote, own = true, own && v.Audience != nil
		}
		g.Verifiers = append(g.Verifiers, v)
	}
	resource := p.Resource
	if tcp, ok := at.(*net.TCPAddr); resource == "" && remote && ok && !tcp.IP.IsUnspecified() {
		resource = p.scheme() + at.String() + endpoint
	}
	switch {
	case resource != "":
		g.Resource = &auth.ResourceMetadata{Resource: resource, Name: "patchbay"}
	case remote && !own:
		return nil, usagef("--auth: tokens are for a server, and its URL is not known on %s", at).hint("--auth-resource https://mcp.example.com/mcp")
	}
	if err := g.Check(); err != nil {
		return nil, usagef("--auth: %s", strings.TrimPrefix(err.Error(), "auth: Guard: ")).hint("patchbay help auth")
	}
	return g, nil
}

// options are what stands behind the first comma of a SPEC.
type options map[string][]string

// take returns an option that there is once, and forgets it.
func (o options) take(name string) (string, error) {
	list := o[name]
	delete(o, name)
	switch len(list) {
	case 0:
		return "", nil
	case 1:
		return list[0], nil
	}
	return "", fmt.Errorf("%s= is there %d times", name, len(list))
}

func (o options) duration(name string) (time.Duration, error) {
	text, err := o.take(name)
	if err != nil || text == "" {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s=%s is no time such as 30s", name, text)
	}
	if d == 0 {
		d = -1 // here it means none, and not what is usual
	}
	return d, nil
}

// verifier reads one SPEC.
func (a *app) verifier(spec string) (auth.Verifier, error) {
	kind, rest, _ := strings.Cut(spec, ":")
	parts := strings.Split(rest, ",")
	subject, more := parts[0], options{}
	for _, p := range parts[1:] {
		name, value, ok := strings.Cut(p, "=")
		if !ok || value == "" {
			return nil, fmt.Errorf("%q is no NAME=VALUE", p)
		}
		more[name] = append(more[name], value)
	}
	if subject == "" && kind != "introspect" {
		return nil, fmt.Errorf("%q needs something behind it", kind+":")
	}
	var v auth.Verifier
	var err error
	switch kind {
	case "apikeys":
		v = &auth.APIKeys{File: subject, Logger: a.logger()}
	case "basic":
		v = &auth.Basic{File: subject, Logger: a.logger()}
	case "hmac":
		v, err = more.hmac(subject)
	case "jwt":
		v, err = more.jwt(a, subject)
	case "introspect":
		v, err = more.introspect(subject)
	default:
		return nil, fmt.Errorf("there are apikeys, basic, hmac, jwt and introspect, and no %q", kind)
	}
	if err != nil {
		return nil, err
	}
	for name := range more {
		return nil, fmt.Errorf("%s knows no %s=", kind, name)
	}
	return v, nil
}

// tokens reads what JWTs of all kinds have.
func (o options) tokens(j *auth.JWT) error {
	j.Audience, j.Algorithms, j.Clients = o["audience"], o["algorithm"], o["azp"]
	delete(o, "azp")
	delete(o, "audience")
	delete(o, "algorithm")
	var err1, err2 error
	j.Leeway, err1 = o.duration("leeway")
	j.RolesClaim, err2 = o.take("roles")
	return errors.Join(err1, err2)
}

func (o options) hmac(from string) (*auth.JWT, error) {
	secret, err := readSecret(from)
	if err != nil {
		return nil, err
	}
	j := &auth.JWT{Secret: auth.Secret(secret)}
	if j.Issuer, err = o.take("issuer"); err != nil {
		return nil, err
	}
	return j, o.tokens(j)
}

func (o options) jwt(a *app, issuer string) (*auth.JWT, error) {
	j := &auth.JWT{Issuer: issuer, Logger: a.logger()}
	keys, err := o.take("keys")
	switch {
	case err != nil:
		return nil, err
	case strings.HasPrefix(keys, "https://"), strings.HasPrefix(keys, "http://"):
		j.KeysURL = keys
	case keys != "":
		if j.Keys, err = readKeys(keys); err != nil {
			return nil, err
		}
	}
	return j, o.tokens(j)
}

func (o options) introspect(issuer string) (*auth.Introspection, error) {
	i := &auth.Introspection{Issuer: issuer, Audience: o["audience"], Clients: o["azp"]}
	delete(o, "audience")
	delete(o, "azp")
	var errs [5]error
	var secret string
	i.URL, errs[0] = o.take("url")
	i.Client.ID, errs[1] = o.take("client")
	secret, errs[2] = o.take("secret")
	i.RolesClaim, errs[3] = o.take("roles")
	i.TTL, errs[4] = o.duration("ttl")
	err := errors.Join(errs[:]...)
	if err == nil && secret != "" {
		i.Client.Secret, err = readSecret(secret)
	}
	if err == nil && issuer == "" && i.URL == "" {
		err = errors.New("give an issuer, or url=")
	}
	return i, err
}

// readSecret reads a secret from env:NAME, or from a file without the line's end.
func readSecret(from string) (string, error) {
	if name, ok := strings.CutPrefix(from, "env:"); ok {
		if v := os.Getenv(name); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("the variable %s is not set", name)
	}
	raw, err := os.ReadFile(from)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(raw), "\r\n"), nil
}

// readKeys reads keys that verify tokens: PEM, of a private key too, or a JSON Web Key Set.
func readKeys(path string) ([]crypto.PublicKey, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var keys []crypto.PublicKey
	if t := bytes.TrimSpace(raw); len(t) > 0 && t[0] == '{' {
		var set struct {
			Keys []json.RawMessage `json:"keys"`
		}
		if err := jsonx.Unmarshal(t, &set); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for i, one := range set.Keys {
			var k jose.JSONWebKey
			if err := k.UnmarshalJSON(one); err != nil {
				return nil, fmt.Errorf("%s: key %d: %w", path, i+1, err)
			}
			if k.Use == "" || k.Use == "sig" { // an issuer's set may have keys for encryption too
				keys = append(keys, k.Public()) // with its alg and kid
			}
		}
		return keys, nil
	}
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if key, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
			keys = append(keys, key)
		} else if private, err := parsePrivate(block.Bytes); err == nil {
			keys = append(keys, private.Public())
		} else {
			return nil, fmt.Errorf("%s: a %q is neither a public nor a private key", path, block.Type)
		}
	}
	if keys == nil {
		return nil, fmt.Errorf("%s: neither PEM nor a JSON Web Key Set", path)
	}
	return keys, nil
}

// parsePrivate reads a private key of PKCS #8, or of SEC 1.
func parsePrivate(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key signs nothing")
	}
	return s, nil
}

// protect puts a guard in front of a server, and its metadata beside it.
func (w *web) protect(g *auth.Guard) {
	w.guard = g
	if g.Resource == nil {
		return
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	metadata := g.Protect(http.HandlerFunc(elsewhere))
	w.mux.Handle(wellKnown, metadata)
	w.mux.Handle(wellKnown+"/", metadata)
	// A proxy passes on the name that clients know.
	if u, err := url.Parse(g.Resource.Resource); err == nil {
		tcp, ok := w.listener.Addr().(*net.TCPAddr)
		if ok && tcp.IP.IsLoopback() || len(w.srv.HTTP.AllowedHosts) > 0 {
			w.srv.HTTP.AllowedHosts = append(w.srv.HTTP.AllowedHosts, u.Host)
		}
	}
}

// handle serves a path, to whom the guard lets in.
func (w *web) handle(path string, h http.Handler) {
	if w.guard != nil {
		h = w.guard.Protect(h)
	}
	if w.limit != nil { // first, as it bounds guesses too
		h = w.limit.Protect(h)
	}
	w.mux.Handle(path, h)
}

func elsewhere(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "the MCP endpoint is at "+endpoint, http.StatusNotFound)
}
