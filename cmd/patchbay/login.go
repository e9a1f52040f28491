package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/launch"
)

var loginVerb = verb{
	name: "login", summary: "Log in to a server, and store the tokens.", usage: "[SERVER] [--client-id ID] [--device | --no-browser]",
	examples: []string{"patchbay login github", "patchbay login https://example.com/mcp --scope read", "patchbay login github --no-browser"},
	minor:    true,
	server:   loginServer,
	command:  func() command { return new(loginCmd) },
}

// loginCmd logs the user in to a server, and keeps the tokens for later runs.
type loginCmd struct {
	Target    string   `arg:"" optional:"" name:"server" help:"A name in mcp.json, or a URL."`
	Scope     []string `sep:"none" placeholder:"SCOPE" help:"Request this scope, not the server's choice (repeatable)."`
	ClientID  string   `name:"client-id" placeholder:"ID" help:"Use this registered client."`
	NoBrowser bool     `name:"no-browser" help:"Print the link, and read the final address from the terminal."`
	Device    bool     `help:"Log in with a code on another device."`
}

func (c *loginCmd) Run(a *app) error {
	if c.Device && c.NoBrowser {
		return usagef("--device and --no-browser exclude each other")
	}
	s, err := a.account(c.Target)
	if err != nil {
		return err
	}
	return a.login(s, c)
}

// login logs a person in to a server.
func (a *app) login(s config.Server, how *loginCmd) error {
	store, err := vault.Open("", nil)
	if err != nil {
		return err
	}
	secure, err := clientTLS(s)
	if err != nil {
		return err
	}
	t := &login.Transport{Server: s.URL, Store: a.secrets.Store(store), ClientName: "Patchbay", TLS: secure}
	if how.ClientID != "" { // not a secret: any issuer that the server names may know it
		t.Registered = func(context.Context, string, string) (*login.Credentials, error) {
			return &login.Credentials{ID: how.ClientID}, nil
		}
	}
	if how.Device {
		t.Grant = &login.Device{Show: func(_ context.Context, code login.DeviceCode) error {
			a.talk.Always("patchbay: go to " + visible(code.Page) + " and enter " + visible(code.Code))
			return nil
		}}
	} else {
		back, err := login.NewLoopback(func(_ context.Context, page string) error { return a.showPage(page, !how.NoBrowser) })
		if err != nil {
			return err
		}
		defer back.Close()
		t.RedirectURL, t.Visit = back.RedirectURL(), back.Visit
		if how.NoBrowser {
			t.Visit = func(ctx context.Context, page string) (*url.URL, error) { return a.visitByHand(ctx, back, page) }
		}
	}
	if err := t.Login(a.ctx, how.Scope...); err != nil {
		var refused *login.RefusedError
		f := &fault{Code: exitUnauthorized, Err: err}
		switch {
		case netfault.Is(err):
			f.Code, f.Err, f.Next = exitUnreachable, &launch.Error{Server: s.Name, Err: err}, a.reachHint(err)
		case errors.Is(err, login.ErrNotRegistered):
			f.Detail = "Register a native application without a secret,\nwith the redirect URI http://127.0.0.1/callback and any port."
			f.Next = shell([]string{"patchbay", "login", s.Name, "--client-id", "ID"})
		case errors.As(err, &refused) && refused.Code == "access_denied":
			f.Next = "try again: " + shell([]string{"patchbay", "login", s.Name})
		case !errors.As(err, &refused) && !how.Device:
			f.Next = "if it accepts a key, send it: " + shell([]string{"patchbay", "tools", "-s", s.Name, "--header", "Authorization: Bearer $TOKEN"})
		}
		return f
	}
	l, err := t.Token(a.ctx)
	if err != nil {
		return err
	}
	a.talk.Note("logged in to %s, by %s%s", s.Name, l.Issuer, validity(l, time.Now()))
	a.talk.Note("the tokens are in %s", store.Where())
	return nil
}

// showPage leads the user to a page, whose scheme auth has checked to be http or https.
func (a *app) showPage(page string, open bool) error {
	if open && login.OpenBrowser(a.ctx, page) == nil {
		a.talk.Always("patchbay: log in with the browser that opens. If none opens, go to")
	} else {
		a.talk.Always("patchbay: to log in, go to")
	}
	a.talk.Always("  " + visible(page))
	return nil
}

// visitByHand waits for the browser, and for an address that a person pastes, because their browser
// may be on another machine, where the login ends at a page that cannot be reached.
func (a *app) visitByHand(ctx context.Context, back *login.Loopback, page string) (*url.URL, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type visit struct {
		at  *url.URL
		err error
	}
	done := make(chan visit, 2)
	go func() { at, err := back.Visit(ctx, page); done <- visit{at, err} }()
	go func() {
		a.talk.Always("patchbay: if the last page cannot be reached, paste its address here:")
		text, err := a.keyboard().Line(a.ctx)
		if err != nil {
			<-ctx.Done() // the browser may still arrive
			return
		}
		at, err := url.Parse(strings.TrimSpace(text))
		if err != nil {
			err = errors.New("the pasted text is not an address")
		}
		done <- visit{at, err}
	}()
	v := <-done
	return v.at, v.err
}

// offerLogin asks a person whether to log in now. It reports whether they did.
func (a *app) offerLogin(s config.Server) bool {
	if !a.tty.in || !a.tty.err {
		return false
	}
	a.talk.Hold()
	a.keyboard().Drop()
	a.talk.Say(visible(fmt.Sprintf("%s requires a login. Open the browser? [Y/n] ", a.serverName())))
	text, err := a.keyboard().Line(a.ctx)
	a.talk.Release()
	if answer := strings.ToLower(strings.TrimSpace(text)); err != nil || answer != "" && answer != "y" && answer != "yes" {
		return false
	}
	if err := a.login(s, &loginCmd{}); err != nil {
		a.talk.Note("%v", err)
		return false
	}
	return true
}

// validity describes how long a token is valid.
func validity(l *login.Record, now time.Time) string {
	switch {
	case l.Expires.IsZero() && l.Refresh == "":
		return ""
	case l.Expires.IsZero():
		return "; refreshed when needed"
	case l.Expires.Before(now) && l.Refresh != "":
		return "; expired, and refreshed when needed"
	case l.Expires.Before(now):
		return "; expired"
	case l.Refresh != "":
		return "; valid for " + age(now, l.Expires) + ", then refreshed"
	}
	return "; valid for " + age(now, l.Expires)
}
