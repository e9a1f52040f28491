package listen

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// HelpAuth describes the values of --auth.
const HelpAuth = `Authentication of callers, with --auth of serve, up, bridge and mock. The first
SPEC that recognizes a credential decides.

  apikeys:FILE                 API keys; patchbay token key adds them to FILE
  basic:FILE                   users with passwords, of htpasswd -B or patchbay
                               token password
  hmac:env:NAME | hmac:FILE    JWTs signed with a secret: patchbay token jwt
  jwt:ISSUER                   access tokens of an authorization server
  introspect:ISSUER            tokens that the authorization server checks

Options, with commas: issuer=, audience=, keys=FILE|URL, algorithm=,
azp=CLIENT, leeway=30s, scopes=CLAIM, roles=CLAIM (hmac, jwt), url=, client=ID,
secret=env:NAME|FILE, ttl=30s (introspect). The audience of a token must be
audience=, else the URL of --auth-resource, else the address of the server.
scopes= names a claim with an array, or a text with blanks; a.b is b in a.
An API key may also be the password of Basic credentials whose user name is
empty, "key", or the id or subject of the key.

--client-ca FILE accepts callers with a certificate of that CA, by its URI, host
name, mail address or distinguished name.

Plain HTTP exposes credentials to the network: for other machines use
--tls-cert FILE --tls-key FILE, or a proxy with TLS in front. All these files
are reread when they change.
`

// Verifier makes the verifier for a SPEC of --auth:
//
//	apikeys:FILE  basic:FILE  hmac:env:NAME  hmac:FILE  jwt:ISSUER  introspect:ISSUER
//
// Options follow after commas, as "patchbay help auth" describes. A verifier that watches files
// reads them again when they change, and logs their faults.
func Verifier(spec string, log *slog.Logger) (auth.Verifier, error) {
	kind, rest, _ := strings.Cut(spec, ":")
	parts := strings.Split(rest, ",")
	subject, more := parts[0], options{}
	for _, p := range parts[1:] {
		name, value, ok := strings.Cut(p, "=")
		if !ok || value == "" {
			return nil, fmt.Errorf("%q is not NAME=VALUE", p)
		}
		more[name] = append(more[name], value)
	}
	if subject == "" && kind != "introspect" {
		return nil, fmt.Errorf("%q needs a value", kind+":")
	}
	var v auth.Verifier
	var err error
	switch kind {
	case "apikeys":
		v = &auth.APIKeys{File: subject, Logger: log}
	case "basic":
		v = &auth.Basic{File: subject, Logger: log}
	case "hmac":
		v, err = more.hmac(subject)
	case "jwt":
		v, err = more.jwt(log, subject)
	case "introspect":
		v, err = more.introspect(subject)
	default:
		return nil, fmt.Errorf("unknown kind %q; use apikeys, basic, hmac, jwt or introspect", kind)
	}
	if err != nil {
		return nil, err
	}
	for name := range more {
		return nil, fmt.Errorf("%s has no option %s=", kind, name)
	}
	return v, nil
}

// InFolder returns a SPEC of --auth whose relative file names, which are relative to a folder, are
// those of files in it.
func InFolder(dir, spec string) string {
	in := func(path string) string {
		if path == "" || filepath.IsAbs(path) || strings.HasPrefix(path, "env:") || strings.Contains(path, "://") {
			return path
		}
		return filepath.Join(dir, path)
	}
	kind, rest, _ := strings.Cut(spec, ":")
	parts := strings.Split(rest, ",")
	if kind == "apikeys" || kind == "basic" || kind == "hmac" {
		parts[0] = in(parts[0])
	}
	for i, p := range parts[1:] {
		if name, value, ok := strings.Cut(p, "="); ok && (name == "keys" || name == "secret") {
			parts[i+1] = name + "=" + in(value)
		}
	}
	return kind + ":" + strings.Join(parts, ",")
}

// options are the parts of a SPEC after the first comma.
type options map[string][]string

// take removes and returns an option that may occur only once.
func (o options) take(name string) (string, error) {
	list := o[name]
	delete(o, name)
	switch len(list) {
	case 0:
		return "", nil
	case 1:
		return list[0], nil
	}
	return "", fmt.Errorf("%s= is given %d times", name, len(list))
}

func (o options) duration(name string) (time.Duration, error) {
	text, err := o.take(name)
	if err != nil || text == "" {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s=%s is not a time such as 30s", name, text)
	}
	if d == 0 {
		d = -1 // 0 means none here, not the default
	}
	return d, nil
}

// tokens reads the options that all kinds of JWT share.
func (o options) tokens(j *auth.JWT) error {
	j.Audience, j.Algorithms, j.Clients = o["audience"], o["algorithm"], o["azp"]
	delete(o, "azp")
	delete(o, "audience")
	delete(o, "algorithm")
	var errs [3]error
	j.Leeway, errs[0] = o.duration("leeway")
	j.ScopesClaim, errs[1] = o.take("scopes")
	j.RolesClaim, errs[2] = o.take("roles")
	return errors.Join(errs[:]...)
}

func (o options) hmac(from string) (*auth.JWT, error) {
	secret, err := ReadSecret(from)
	if err != nil {
		return nil, err
	}
	j := &auth.JWT{Secret: auth.Secret(secret)}
	if j.Issuer, err = o.take("issuer"); err != nil {
		return nil, err
	}
	return j, o.tokens(j)
}

func (o options) jwt(log *slog.Logger, issuer string) (*auth.JWT, error) {
	j := &auth.JWT{Issuer: issuer, Logger: log}
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
	var errs [6]error
	var secret string
	i.URL, errs[0] = o.take("url")
	i.ClientID, errs[1] = o.take("client")
	secret, errs[2] = o.take("secret")
	i.RolesClaim, errs[3] = o.take("roles")
	i.ScopesClaim, errs[4] = o.take("scopes")
	i.TTL, errs[5] = o.duration("ttl")
	err := errors.Join(errs[:]...)
	if err == nil && secret != "" {
		secret, err = ReadSecret(secret)
		i.ClientSecret = auth.Secret(secret)
	}
	if err == nil && issuer == "" && i.URL == "" {
		err = errors.New("give an issuer, or url=")
	}
	return i, err
}

// ReadSecret reads a secret from env:NAME, or from a file, without the newline at its end.
func ReadSecret(from string) (string, error) {
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

// readKeys reads keys that verify tokens: PEM, which may be a private key, or a JSON Web Key Set.
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
			if k.Use == "" || k.Use == "sig" { // an issuer's set may also have keys for encryption
				keys = append(keys, k.Public()) // with its alg and kid
			}
		}
		return keys, nil
	}
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if key, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
			keys = append(keys, key)
		} else if private, err := ParsePrivate(block.Bytes); err == nil {
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

// ParsePrivate reads a private key of PKCS #8, or of SEC 1.
func ParsePrivate(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return s, nil
}
