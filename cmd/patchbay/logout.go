package main

// logoutCmd revokes the tokens for a server, where that is offered, and forgets them.
type logoutCmd struct {
	Target string `arg:"" optional:"" name:"server" help:"A name of mcp.json, or a URL."`
}

func (c *logoutCmd) Run(a *app) error {
	s, err := a.accountOf(c.Target)
	if err != nil {
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
			a.talk.note("logged out at %s; %s has no way to revoke tokens", s.Name, l.Issuer)
		} else if err == nil {
			a.talk.note("logged out at %s; %s has revoked the tokens", s.Name, l.Issuer)
		} else {
			a.talk.note("the tokens for %s are forgotten here", s.Name)
		}
	}
	if len(ended) == 0 && err == nil {
		a.talk.note("nobody was logged in at %s", s.Name)
	}
	return err
}
