package main

import (
	"errors"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
)

var tokenGetVerb = verb{
	name: "get", summary: "Print an access token for a server, refreshed if necessary.", usage: "[SERVER]",
	examples: []string{"patchbay token get github", "TOKEN=$(patchbay token get https://example.com/mcp)"},
	server:   loginServer,
	command:  func() command { return new(tokenGetCmd) },
}

// tokenGetCmd prints a token for other programs.
type tokenGetCmd struct {
	Target string `arg:"" optional:"" name:"server" help:"A name in mcp.json, or a URL."`
}

func (c *tokenGetCmd) Run(a *app) error {
	s, err := a.account(c.Target)
	if err != nil {
		return err
	}
	t, err := a.transport(s)
	if err != nil {
		return err
	}
	ctx, cancel := a.startContext(a.ctx, s)
	defer cancel()
	l, err := t.Token(ctx)
	if errors.Is(err, login.ErrNeeded) {
		return a.loggedOut()
	}
	if err != nil {
		return err
	}
	a.talk.Note("access token for %s, by %s%s", l.Server, l.Issuer, validity(l, time.Now()))
	a.print(string(l.Access)) // no other verb prints a stored token
	return nil
}
