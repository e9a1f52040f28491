// Package people makes the authorization server of a deployment whose gateway.yaml has the member login.
package people

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/listen"
)

// Server returns the authorization server of a member login. The URL of the endpoint is the resource.
// Without login.url the server is at the root of that URL. Tokens can also be for the URL of the
// administration, if there is one.
func Server(l *deploy.Login, endpoint, admin string, scopes []string, log *slog.Logger) *issuer.Server {
	s := &issuer.Server{
		URL: l.URL, Resource: endpoint, Scopes: scopes, Claims: l.Claims, Schemes: l.Schemes, Dir: l.Dir, TokenLife: l.Token, SessionLife: l.Session,
		Provider: issuer.Provider{Issuer: l.Issuer, ClientID: l.Client, Secret: auth.Secret(l.Secret), Scopes: l.Scopes}, Logger: log,
	}
	if admin != "" {
		s.Resources = []string{admin}
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
func Login(l *deploy.Login) func(resource, address, admin string, scopes []string, log *slog.Logger) *issuer.Server {
	if l == nil {
		return nil
	}
	return func(resource, address, admin string, scopes []string, log *slog.Logger) *issuer.Server {
		if resource == "" && l.URL != "" {
			resource = l.URL + listen.Path
		}
		if resource = cmp.Or(resource, address); resource == "" {
			return nil
		}
		return Server(l, resource, admin, scopes, log)
	}
}

// Admin returns the URL of the administration at an address, with its path, for which administrators get
// tokens: that of login.adminURL, else of the address, with the host of login.url if the address has none.
// Empty: nothing tells it, or nobody logs in.
func Admin(l *deploy.Login, at net.Addr, scheme, path string) string {
	tcp, ok := at.(*net.TCPAddr)
	switch {
	case l == nil:
		return ""
	case l.Admin != "":
		return l.Admin + path
	case ok && !tcp.IP.IsUnspecified():
		return scheme + at.String() + path
	}
	u, err := url.Parse(l.URL)
	if !ok || err != nil || u.Host == "" {
		return ""
	}
	return scheme + net.JoinHostPort(u.Hostname(), strconv.Itoa(tcp.Port)) + path
}

// Explain returns a function that adds the place in a file, and the next step, to an error of the
// authorization server.
func Explain(f *deploy.File) func(err error) error {
	return func(err error) error {
		text := strings.TrimPrefix(err.Error(), "issuer: ")
		if errors.Is(err, issuer.ErrInUse) {
			return deploy.Problems{f.Problem("login.dir", "login.dir: "+text, "end it, or name another folder")}
		}
		return deploy.Problems{f.Problem("login", "login: "+text, "add url: https://mcp.example.com to login, if that is the URL of the server")}
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
		admin := values.Admin
		if admin == "" {
			admin = site + "/admin"
		}
		if err := Server(&values, site+"/mcp", admin, nil, nil).Check(); err != nil {
			faults = append(faults, Fault{Member: "login." + member, Text: "login." + member + ": " + strings.TrimPrefix(err.Error(), "issuer: "), Fix: fix})
		}
	}
	one("issuer", "write it as the metadata of the identity provider spells it", deploy.Login{Issuer: l.Issuer, Client: "client"})
	one("url", "write it like https://mcp.example.com", deploy.Login{URL: l.URL})
	one("adminURL", "write it like https://admin.example.com", deploy.Login{Admin: l.Admin})
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
