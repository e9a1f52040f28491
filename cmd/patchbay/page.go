package main

import (
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/pagelink"
	"github.com/patchbay-dev/patchbay/internal/browser"
)

var pageVerb = verb{
	name: "page", summary: "Open the page of a running up or inspect.", usage: "[--print]",
	examples: []string{"patchbay page", "patchbay page --print"},
	minor:    true,
	details: `Makes a link that lets one person in, once, within 5 minutes. Only the user who
has started the gateway can do that.`,
	server:  gatewayServer,
	command: func() command { return new(pageCmd) },
}

type pageCmd struct {
	Print bool `help:"Print the link instead of opening the browser."`
}

func (c *pageCmd) Run(a *app) error {
	u, err := pagelink.Find(a.ctx, a.PID)
	if err != nil {
		return err
	}
	if !c.Print {
		file, err := pagelink.Ask(a.ctx, u, true)
		if err == nil {
			if err = browser.Open(a.ctx, file); err == nil {
				a.talk.Note("opened %s in the browser; if nothing opens: %s", u.Page, a.again("--print"))
				return nil
			}
		}
		if !errors.Is(err, browser.ErrNone) {
			a.talk.Note("warning: %v", err)
		}
	}
	link, err := pagelink.Ask(a.ctx, u, false)
	if err != nil {
		return fmt.Errorf("ask for a link: %w", err)
	}
	a.print(link)
	return nil
}
