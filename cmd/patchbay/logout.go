package main

import (
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/inputs"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/launch"
)

var logoutVerb = verb{
	name: "logout", summary: "Revoke and delete the tokens for a server.", usage: "[SERVER]",
	examples: []string{"patchbay logout github"},
	minor:    true,
	server:   loginServer,
	command:  func() command { return new(logoutCmd) },
}

// logoutCmd revokes the tokens for a server, if the server supports that, and forgets them.
type logoutCmd struct {
	Target string `arg:"" optional:"" name:"server" help:"A name in mcp.json, or a URL."`
}

func (c *logoutCmd) Run(a *app) error {
	s, err := a.accountNamed(c.Target)
	if err != nil {
		return err
	}
	if done, err := a.logoutInputs(s); done || err != nil {
		return err
	}
	if s, err = a.accountOf(s); err != nil {
		return err
	}
	t, err := a.transport(s)
	if err != nil {
		return err
	}
	ctx, cancel := a.startContext(a.ctx, s)
	defer cancel()
	ended, err := t.Logout(ctx)
	for _, l := range ended {
		if l.RevokeURL == "" {
			a.talk.Note("logged out of %s; %s cannot revoke tokens", s.Name, l.Issuer)
		} else if err == nil {
			a.talk.Note("logged out of %s; %s has revoked the tokens", s.Name, l.Issuer)
		} else {
			a.talk.Note("deleted the tokens for %s here", s.Name)
		}
	}
	if len(ended) == 0 && err == nil {
		a.talk.Note("was not logged in to %s", s.Name)
	}
	return err
}

// logoutInputs forgets the kept answers for a server. It reports whether there is nothing else to
// do.
func (a *app) logoutInputs(s config.Server) (done bool, err error) {
	if len(s.Inputs()) == 0 {
		return false, nil
	}
	var ids []string
	for _, in := range s.Inputs() {
		ids = append(ids, in.ID)
	}
	gone, err := inputs.Forget(a.ctx, fileOf(s), ids...)
	for _, id := range gone {
		a.talk.Note("deleted the answer to the input %s", id)
	}
	done = len(gone) > 0 || !launch.CanLogIn(s)
	if len(gone) == 0 && done && err == nil {
		a.talk.Note("nothing was stored for %s", s.Name)
	}
	return done, err
}
