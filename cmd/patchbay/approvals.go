package main

import (
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/host/approval"
)

var configApprovalsVerb = verb{
	name: "approvals", summary: "List and revoke permanently allowed tools.", usage: "[revoke SERVER [TOOL] | revoke --all]",
	examples: []string{"patchbay config approvals", "patchbay config approvals revoke shop buy"},
	details: `Lists the tools that you allowed permanently. A tool that has changed since then
needs a new approval.`,
	command: func() command { return new(configApprovalsCmd) },
}

// configApprovalsCmd lists and revokes the permanent approvals of tools.
type configApprovalsCmd struct {
	Words []string `arg:"" optional:"" name:"revoke SERVER [TOOL]" help:"Revoke these."`
	All   bool     `help:"Revoke all (with revoke)."`
}

func (*configApprovalsCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	if len(a.words) == 0 {
		return []complete.Candidate{{Text: "revoke", About: "Delete approvals."}}
	}
	return a.approvedNames()
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
	case len(c.Words) == 0 || c.Words[0] != "revoke" || len(c.Words) > 3 || c.All == (len(c.Words) > 1):
		return usagef("approvals takes nothing, or revoke with a server or --all").Hint("patchbay config approvals revoke SERVER [TOOL]")
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
		cells = append(cells, []string{p.Server, p.Tool, age(p.At, time.Now()), orName(p.By, "-"), p.Identity})
	}
	a.columns("approvals", []string{"SERVER", "TOOL", "SINCE", "BY", "IDENTITY"}, cells)
	if len(list) > 0 {
		a.talk.Note("stored in %s", f.Path())
	}
	return nil
}

// approvedNames returns the servers with approvals, or the approved tools of one server.
func (a *app) approvedNames() []complete.Candidate {
	f, err := approval.Open("")
	if err != nil {
		return nil
	}
	list, err := f.List()
	if err != nil {
		return nil
	}
	var out []complete.Candidate
	for _, p := range list {
		s := complete.Candidate{Text: p.Server}
		if len(a.words) > 1 {
			if p.Server != a.words[1] {
				continue
			}
			s.Text = p.Tool
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
