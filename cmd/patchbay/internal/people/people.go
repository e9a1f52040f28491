// Package people makes the authorization server of a deployment whose gateway.yaml has the member login.
package people

import (
	"cmp"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/listen"
)

// Server returns the authorization server of a member login. The URL of the endpoint is the resource.
// Without login.url the server is at the root of that URL.
func Server(l *deploy.Login, endpoint string, scopes []string, log *slog.Logger) *issuer.Server {
	s := &issuer.Server{
		URL: l.URL, Resource: endpoint, Scopes: scopes, Claims: l.Claims, Schemes: l.Schemes, Dir: l.Dir, TokenLife: l.Token, SessionLife: l.Session,
		Provider: issuer.Provider{Issuer: l.Issuer, ClientID: l.Client, Secret: auth.Secret(l.Secret), Scopes: l.Scopes}, Logger: log,
	}
	if u, err := url.Parse(endpoint); err == nil && s.URL == "" {
		s.URL = u.Scheme + "://" + u.Host
	}
	for _, one := range l.Require {
		if s.Require == nil {
			s.Require = map[string][]string{}
		}
		s.Require[one.Claim] = one.Values
	}
	return s
}

// Login returns a function that makes the authorization server of a member login, as package protect
// wants it; nil if there is no such member.
func Login(l *deploy.Login) func(resource, address string, scopes []string, log *slog.Logger) *issuer.Server {
	if l == nil {
		return nil
	}
	return func(resource, address string, scopes []string, log *slog.Logger) *issuer.Server {
		if resource == "" && l.URL != "" {
			resource = l.URL + listen.Path
		}
		if resource = cmp.Or(resource, address); resource == "" {
			return nil
		}
		return Server(l, resource, scopes, log)
	}
}

// Fault is a fault of a member, or a warning about it.
type Fault struct {
	Member, Text, Fix string
	Warning           bool
}

// Check returns the faults in the values of a member login. It sends nothing, and makes no file.
func Check(l *deploy.Login) (faults []Fault) {
	const site = "https://localhost"
	one := func(member, fix string, values deploy.Login) {
		if values.Issuer == "" {
			values.Issuer, values.Client = site, "client"
		}
		values.Token, values.Session = l.Token, l.Session
		if err := Server(&values, site+"/mcp", nil, nil).Check(); err != nil {
			faults = append(faults, Fault{Member: "login." + member, Text: "login." + member + ": " + strings.TrimPrefix(err.Error(), "issuer: "), Fix: fix})
		}
	}
	one("issuer", "write it as the metadata of the identity provider spells it", deploy.Login{Issuer: l.Issuer, Client: "client"})
	one("url", "write it like https://mcp.example.com", deploy.Login{URL: l.URL})
	one("scopes", "", deploy.Login{Scopes: l.Scopes})
	one("claims", "remove it", deploy.Login{Claims: l.Claims})
	one("require", "", deploy.Login{Require: l.Require})
	one("schemes", "write it like cursor", deploy.Login{Schemes: l.Schemes})
	u, err := url.Parse(l.Issuer)
	if err != nil {
		return faults
	}
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case u.Host == "login.microsoftonline.com" && slices.Contains([]string{"common", "organizations", "consumers", "", "v2.0"}, path[0]):
		faults = append(faults, Fault{
			Member: "login.issuer", Text: "login.issuer names no tenant, so the issuer of the tokens is another one", Fix: "write https://login.microsoftonline.com/TENANT-ID/v2.0",
		})
	case u.Host == "accounts.google.com" && len(l.Require) == 0:
		faults = append(faults, Fault{
			Member: "login.issuer", Text: "everybody with a Google account can log in", Fix: "add require: {hd: [example.com]} to login", Warning: true,
		})
	}
	return faults
}
