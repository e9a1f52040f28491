package main

import (
	"errors"
	"slices"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/protect"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/mcp"
)

// protection has the flags that decide how callers reach a server over HTTP.
type protection = protect.Flags

// limits has the flag for rate limits of callers.
type limits = protect.Limits

// protectedChain makes the middlewares that the flags of a server ask for.
func (a *app) protectedChain(p *protection, g governed, overHTTP bool) (*chain.Chain, error) {
	return a.chain(chain.Config{Log: p.Log, Limits: p.Limit, Policy: g.Policy, Audit: p.Audit, HTTP: overHTTP})
}

// chain makes middlewares. It closes them when the program ends.
func (a *app) chain(c chain.Config) (*chain.Chain, error) {
	c.File = a.deployed
	made, err := chain.New(c, a.program())
	if err != nil {
		return nil, chainFault(err)
	}
	a.atEnd = slices.Insert(a.atEnd, 0, made.Close)
	if made.Trail() != nil {
		a.env.OnLogin = made.LoggedIn
	}
	return made, nil
}

// program returns what package chain needs of this run.
func (a *app) program() chain.Program {
	return chain.Program{Talk: a.talk, Logger: a.logger(), Lines: terminal.Lines{Talk: a.talk}, Wire: a.wire, Version: Version, Redactor: a.secrets.Redactor()}
}

// chainFault explains an error of package chain.
func chainFault(err error) error {
	var of *chain.Error
	if !errors.As(err, &of) {
		return err
	}
	f := (&fault{Err: of.Err}).Hint(of.Next)
	if of.Usage {
		f.Code = exitUsage
	}
	return f
}

// inFront puts a chain in front of the server of a gateway over stdio.
func (a *app) inFront(srv *mcp.Server, made *chain.Chain) error {
	mw, err := made.Front()
	srv.Use(mw...)
	return chainFault(err)
}
