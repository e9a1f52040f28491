package main

import (
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
)

var whoamiVerb = verb{
	name: "whoami", summary: "Show the login at a server, without its tokens.", usage: "[SERVER]",
	examples: []string{"patchbay whoami github"},
	minor:    true,
	server:   loginServer,
	command:  func() command { return new(whoamiCmd) },
}

// whoamiCmd shows what is known of a login, but not its tokens.
type whoamiCmd struct {
	Target string `arg:"" optional:"" name:"server" help:"A name in mcp.json, or a URL."`
}

func (c *whoamiCmd) Run(a *app) error {
	s, err := a.account(c.Target)
	if err != nil {
		return err
	}
	t, err := a.transport(s)
	if err != nil {
		return err
	}
	list, err := t.Logins(a.ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return a.loggedOut()
	}
	l, now := list[0], time.Now()
	scopes := l.Granted
	if scopes == nil {
		scopes = l.Asked
	}
	if a.JSON {
		return a.printJSON(struct {
			Server  string     `json:"server"`
			URL     string     `json:"url"`
			Issuer  string     `json:"issuer"`
			Client  string     `json:"client"`
			Scopes  []string   `json:"scopes"`
			Got     time.Time  `json:"got"`
			Expires *time.Time `json:"expires,omitempty"`
			Refresh bool       `json:"refresh"` // there is a refresh token
		}{s.Name, l.Server, l.Issuer, l.Client, append([]string{}, scopes...), l.Got, expiry(l), l.Refresh != ""})
	}
	a.print("server  " + a.shown(l.Server))
	a.print("issuer  " + a.shown(l.Issuer))
	a.print("client  " + a.shown(l.Client))
	a.print("scopes  " + a.shown(orName(strings.Join(scopes, " "), "(none)")))
	a.print("token   " + orName(strings.TrimPrefix(validity(&l, now), "; "), "valid until refused"))
	if store, ok := t.Store.(interface{ Where() string }); ok {
		a.print("stored  " + store.Where())
	}
	return nil
}

func expiry(l login.Record) *time.Time {
	if l.Expires.IsZero() {
		return nil
	}
	return &l.Expires
}
