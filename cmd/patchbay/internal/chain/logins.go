package chain

import (
	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// person writes a line about the login of a person at the authorization server with a URL.
func (c *Chain) person(url string, e issuer.Event) {
	line := audit.Entry{Kind: audit.Login + audit.Kind(e.State), Reason: e.Reason, Principal: &audit.Principal{Issuer: url, Client: e.Client}}
	if e.Subject != "" {
		line.Principal.ID = url + "#" + e.Subject
	}
	if e.Host != "" || e.Address != "" {
		line.Client = &audit.Client{Name: e.Host, IP: e.Address}
	}
	if e.State == issuer.EventRefused {
		c.trail.Log.AddSome(line)
		return
	}
	c.trail.Log.Add(line)
}

// LoggedIn writes a line about the login of this program at a server.
func (c *Chain) LoggedIn(s config.Server, e login.Event) {
	detail, err := jsonx.Marshal(map[string]string{"client": e.Client, "issuer": e.Issuer})
	if c.trail == nil || err != nil {
		return
	}
	line := audit.Entry{Kind: audit.Login + audit.Kind(e.State), Reason: e.Reason, Server: &audit.Server{Name: s.Name, Identity: entry.Shown(s)}}
	if e.Issuer != "" {
		line.Detail = detail
	}
	c.trail.Log.AddSome(line)
}
