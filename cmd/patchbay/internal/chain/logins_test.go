package chain

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/listen"
)

// Logins of people at the gateway, and of the gateway at servers, have lines that name the person, the host,
// the address, the issuer and the reason. An address causes few lines about refused ones.
func TestLoginLines(t *testing.T) {
	p, _ := program()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	c, err := New(Config{Audit: path, HTTP: true}, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Front(); err != nil {
		t.Fatal(err)
	}
	o := &listen.Options{Login: &issuer.Server{URL: "https://gw.example.com"}}
	c.Listen(o)
	alice := issuer.Login{Subject: "alice", Host: "Desk"}
	o.Login.OnLogin(issuer.Event{State: issuer.EventDone, Login: alice, Client: "c1", Address: "10.0.0.7"})
	o.Login.OnLogin(issuer.Event{State: issuer.EventEnded, Login: alice, Client: "c1", Reason: "the host has logged out"})
	for range 100 {
		o.Login.OnLogin(issuer.Event{State: issuer.EventRefused, Client: "c2", Address: "10.0.0.8", Reason: "no"})
	}
	server := config.Server{Name: "jira", URL: "https://jira.example.com/mcp"}
	c.LoggedIn(server, login.Event{State: login.EventEnded, Issuer: "https://idp.example.com", Client: "c3", Reason: "logged out"})
	c.LoggedIn(server, login.Event{State: login.EventRefused, Reason: "no"})
	c.Close()
	var got []string
	refused, lines := 0, 0
	for e, err := range audit.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Kind == audit.Node || e.Kind == audit.Config:
		case e.Principal != nil && e.Principal.Client == "c2":
			if e.Kind != "login.refused" || e.Client.IP != "10.0.0.8" || e.Reason != "no" {
				t.Errorf("the line of a refused login is %s", e.Line())
			}
			lines, refused = lines+1, refused+1+e.More
		case e.Principal != nil:
			client := audit.Client{}
			if e.Client != nil {
				client = *e.Client
			}
			got = append(got, fmt.Sprintf("%s %s %s %s %s %s", e.Kind, e.Principal.ID, e.Principal.Client, client.Name, client.IP, e.Reason))
		default:
			got = append(got, fmt.Sprintf("%s %s %s %s %s", e.Kind, e.Server.Name, e.Server.Identity, e.Detail, e.Reason))
		}
	}
	want := []string{
		"login.done https://gw.example.com#alice c1 Desk 10.0.0.7 ",
		"login.ended https://gw.example.com#alice c1 Desk  the host has logged out",
		`login.ended jira jira https://jira.example.com/mcp {"client":"c3","issuer":"https://idp.example.com"} logged out`,
		"login.refused jira jira https://jira.example.com/mcp  no",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the lines are %q, want %q", got, want)
	}
	if refused != 100 || lines > 30 {
		t.Errorf("%d lines count %d refused logins, want few that count 100", lines, refused)
	}
}
