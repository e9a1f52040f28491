package main

import (
	"errors"
	"net/http"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/install"
)

var upInstallVerb = verb{
	name: "install", summary: "Add the running patchbay up to the file of a host.", usage: "HOST ...",
	examples: []string{"patchbay up install cursor", "patchbay up install vscode codex --view team --name team", "patchbay up install zed --url https://gw.example.com/mcp --header 'X-Key: KEY'"},
	details: `Hosts: claude-code, cursor, vscode, windsurf, zed, codex, gemini; prints the
lines to add for goose. Comments and layout stay; the undo command is printed.
Secrets of --header become inputs or variables of the host.`,
	command: func() command { return new(upInstallCmd) },
}

type upInstallCmd struct {
	install.Where
	URL   string `name:"url" placeholder:"URL" help:"Add this gateway; default: the one running patchbay up."`
	View  string `placeholder:"NAME" help:"Add this view of it."`
	Force bool   `help:"Replace another server of that name."`
	Dry   bool   `name:"dry-run" help:"Show the changes without writing them."`
}

func (*upInstallCmd) candidates(*app, string) []complete.Candidate { return hostNames() }

// hostFiles finds the files that the flags name.
func hostFiles(w *install.Where) (targets []*install.Target, err error) {
	sys, err := system()
	for _, name := range w.Hosts {
		h, failed := hostNamed(name)
		if failed != nil {
			return nil, failed
		}
		t, failed := install.Find(h, sys, w.Scope())
		if failed != nil {
			return nil, failed
		}
		targets = append(targets, t)
	}
	return targets, err
}

// Run plans all changes, and then makes them.
func (c *upInstallCmd) Run(a *app) error {
	targets, err := hostFiles(&c.Where)
	if err != nil {
		return err
	}
	g := &install.Gateway{Name: c.Name, URL: c.URL, Header: http.Header{}}
	if err := a.addHeaders(g.Header); err != nil {
		return err
	}
	switch {
	case c.URL != "" && c.View != "":
		return usagef("--url and --view exclude each other; a view has a URL of its own")
	case c.URL != "" && !entry.IsServerURL(c.URL):
		return usagef("--url %q is not an http or https URL", c.URL)
	case c.URL == "":
		u, err := a.runningUp()
		if err != nil {
			return err
		}
		if g.URL, err = install.At(u, c.View); err != nil {
			return err
		}
	}
	return g.Install(targets, &install.How{Force: c.Force, Dry: c.Dry, Print: func(s string) { a.print(a.shown(s)) }, Note: a.talk.Note})
}

var upUninstallVerb = verb{
	name: "uninstall", summary: "Take a gateway out of the file of a host.", usage: "HOST ...",
	examples: []string{"patchbay up uninstall cursor", "patchbay up uninstall codex --name team"},
	details:  `Restores the file from before up install, if nothing else has changed it since.`,
	command:  func() command { return new(upUninstallCmd) },
}

type upUninstallCmd struct{ install.Where }

func (*upUninstallCmd) candidates(*app, string) []complete.Candidate { return hostNames() }

func (c *upUninstallCmd) Run(a *app) error {
	targets, err := hostFiles(&c.Where)
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range targets {
		exact, err := install.Undo(t, c.Name)
		switch {
		case err != nil:
			errs = append(errs, err)
		case exact:
			a.print(a.shown(t.Path + " is as it was before"))
		default:
			a.print(a.shown("removed " + c.Name + " from " + t.Path))
		}
	}
	return errors.Join(errs...)
}
