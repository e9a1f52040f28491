package deploy

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Login says where people log in whose identity provider registers no MCP hosts. The gateway is the
// authorization server of the hosts then (package auth/issuer).
type Login struct {
	Issuer  string        // of the identity provider, as its metadata spells it
	Client  string        // id of the client that is registered there
	Secret  string        // of the client; empty: it has none
	URL     string        // of the gateway for hosts, without the path /mcp; empty: its address
	Admin   string        // URL of listen.admin for administrators; empty: its address
	Scopes  []string      // to ask the identity provider for; nil: openid, profile and email
	Claims  []string      // that tokens have; nil: the default of package auth/issuer
	Require []Requirement // claims that a person must have, in the order of the file
	Schemes []string      // of redirect URIs of apps, such as cursor; nil: only https and loopback
	Dir     string        // of keys and of the state of logins; empty: they are in memory
	Token   time.Duration // life of an access token; default 10 minutes
	Session time.Duration // time after which a person logs in again; default 12 hours
}

// Requirement is a claim and its allowed values, in which * stands for any text.
type Requirement struct {
	Claim  string
	Values []string
}

const (
	defaultToken   = 10 * time.Minute
	defaultSession = 12 * time.Hour
)

func (r *reader) login(n *yaml.Node) {
	l := &Login{Token: defaultToken, Session: defaultSession}
	r.file.Login = l
	ok := r.mapping(n, "login", map[string]func(*yaml.Node){
		"issuer": func(n *yaml.Node) { l.Issuer = r.text(n, "login.issuer") },
		"client": func(n *yaml.Node) { l.Client = r.text(n, "login.client") },
		"secret": func(n *yaml.Node) {
			l.Secret = r.text(n, "login.secret")
			if literal(n) {
				r.warn(n, plainFix, "login.secret is in plain text")
			}
		},
		"url": func(n *yaml.Node) { l.URL = strings.TrimSuffix(r.text(n, "login.url"), "/") },
		"adminURL": func(n *yaml.Node) {
			l.Admin = strings.TrimSuffix(r.text(n, "login.adminURL"), "/")
		},
		"scopes":  func(n *yaml.Node) { l.Scopes = r.list(n, "login.scopes") },
		"claims":  func(n *yaml.Node) { l.Claims = r.list(n, "login.claims") },
		"schemes": func(n *yaml.Node) { l.Schemes = r.list(n, "login.schemes") },
		"dir":     func(n *yaml.Node) { l.Dir = r.path(n, "login.dir") },
		"token":   func(n *yaml.Node) { l.Token = r.duration(n, "login.token", time.Second, time.Hour) },
		"session": func(n *yaml.Node) { l.Session = r.duration(n, "login.session", time.Second, 90*day) },
		"require": func(n *yaml.Node) {
			r.note(n, "login.require")
			r.Members(n, "login.require", func(key, value *yaml.Node) {
				l.Require = append(l.Require, Requirement{key.Value, r.list(value, "login.require."+key.Value)})
			})
		},
	})
	if ok {
		r.needs(n, "login", "issuer", "https://login.example.com")
		r.needs(n, "login", "client", "ID")
	}
}
