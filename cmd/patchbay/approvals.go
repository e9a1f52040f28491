package main

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/approval"
)

var configApprovalsVerb = verb{
	name: "approvals", summary: "List and revoke permanently allowed tools.", usage: "[changes | revoke SERVER [TOOL] | revoke --all]",
	examples: []string{"patchbay config approvals", "patchbay config approvals revoke shop buy"},
	details: `Lists the tools that you allowed permanently. A tool that has changed since then
needs a new approval: changes starts the servers, and shows what has changed.`,
	command: func() command { return new(configApprovalsCmd) },
}

// configApprovalsCmd lists and revokes the permanent approvals of tools.
type configApprovalsCmd struct {
	Words []string `arg:"" optional:"" name:"changes | revoke SERVER [TOOL]" help:"Show changes, or revoke these."`
	All   bool     `help:"Revoke all (with revoke)."`
}

func (*configApprovalsCmd) candidates(a *app, _ string) []complete.Candidate {
	return allow.Candidates(a.words)
}

func (c *configApprovalsCmd) Run(a *app) error {
	f, err := approval.Open("")
	if err != nil {
		return err
	}
	switch {
	case len(c.Words) == 0 && !c.All:
		list, err := f.List()
		if err != nil {
			return err
		}
		return a.showApprovals(f, list)
	case len(c.Words) == 1 && c.Words[0] == "changes" && !c.All:
		return a.showChanges(f)
	case len(c.Words) == 0 || c.Words[0] != "revoke" || len(c.Words) > 3 || c.All == (len(c.Words) > 1):
		return usagef("approvals takes nothing, changes, or revoke with a server or --all").Hint("patchbay config approvals revoke SERVER [TOOL]")
	}
	return c.revoke(a, f)
}

func (c *configApprovalsCmd) revoke(a *app, f *approval.File) error {
	list, err := f.List()
	if err != nil {
		return err
	}
	which := func(p approval.Approval) bool {
		return c.All || p.Server == c.Words[1] && (len(c.Words) < 3 || p.Tool == c.Words[2])
	}
	if !c.All && !slices.ContainsFunc(list, which) {
		var names []string
		for _, p := range list {
			names = append(names, p.Server)
		}
		return usagef("no such approval%s", didYouMean(c.Words[1], names)).Hint(a.beside("config", "approvals"))
	}
	gone, err := f.Revoke(which)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.showApprovals(f, gone)
	}
	for _, p := range gone {
		a.print("revoked " + a.shown(oneLine(p.Server+" "+p.Tool)))
	}
	if len(gone) == 0 {
		a.talk.Note("no approvals")
	}
	return nil
}

func (a *app) showApprovals(f *approval.File, list []approval.Approval) error {
	if a.JSON {
		return a.printJSON(append([]approval.Approval{}, list...))
	}
	cells := [][]string{}
	for _, p := range list {
		cells = append(cells, []string{p.Server, p.Tool, orName(p.Text, "-"), age(p.At, time.Now()), orName(p.By, "-"), p.Identity})
	}
	a.columns("approvals", []string{"SERVER", "TOOL", "RULE", "SINCE", "BY", "IDENTITY"}, cells)
	if len(list) > 0 {
		a.talk.Note("stored in %s", f.Path())
	}
	return nil
}

// showChanges shows what has changed in allowed tools, as the servers of the configuration list them now.
func (a *app) showChanges(f *approval.File) error {
	list, err := f.List()
	if err != nil {
		return err
	}
	plan, err := a.upPlan(false)
	if err != nil {
		return err
	}
	h, err := a.hosting(&host.Host{})
	if err != nil {
		return err
	}
	a.atEnd = append(a.atEnd, h.leave)
	servers := slices.DeleteFunc(plan.servers, func(s config.Server) bool {
		return !slices.ContainsFunc(list, func(p approval.Approval) bool { return p.Server == cmp.Or(s.Group, entry.ShortName(s, nil)) })
	})
	if err := errors.Join(h.start(servers), h.wait(a.ctx)); err != nil {
		return err
	}
	changes := allow.Changes(list, h.AllTools(a.ctx))
	if a.JSON {
		return a.printJSON(changes)
	}
	for _, c := range changes {
		a.print(a.shown(oneLine(c.Server + "/" + c.Tool + ": " + c.Changed)))
		for _, l := range c.Lines {
			a.print(a.paint(screen.Wrap(l.String(), a.tty.width), l.Style()))
		}
	}
	if len(changes) == 0 {
		a.talk.Note("no allowed tool has changed, of the servers that answer")
	}
	return nil
}
