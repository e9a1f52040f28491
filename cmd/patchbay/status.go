package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
)

var statusVerb = verb{
	name: "status", summary: "Show the state of running gateways.", usage: "[-s URL]",
	examples: []string{"patchbay status", "patchbay status --json", "patchbay status -s http://127.0.0.1:7420/mcp"},
	server:   namedServer | urlIsServer,
	details: `Shows each patchbay up of yours on this machine, or the one at URL, with the
last output of servers that failed. Exit code 4: none is running.`,
	command: func() command { return new(statusCmd) },
}

// statusCmd shows the state of the servers of each running up.
type statusCmd struct{}

// Run prints a table per run of up, or all as a JSON array.
func (*statusCmd) Run(a *app) error {
	ups, err := a.askedUps()
	if err != nil {
		return err
	}
	answered := false
	if a.JSON {
		reports := []*health.Report{}
		for _, u := range ups {
			if u.Report != nil {
				reports = append(reports, u.Report)
			}
		}
		if err := json.NewEncoder(a.out).Encode(reports); err != nil {
			return err
		}
		ups = slices.DeleteFunc(ups, func(u health.Found) bool { return u.Err == nil }) // what is left is a warning
		answered = len(reports) > 0
	}
	for i, u := range ups {
		if i > 0 && !a.JSON {
			a.print("")
		}
		if u.Err != nil {
			a.talk.Always("patchbay: warning: the gateway at " + u.Path + " does not report its state: " + visible(u.Err.Error()))
			continue
		}
		answered = true
		page := board.Page{Print: a.print, Shown: a.shown, Bold: a.bold, Width: a.tty.width}
		page.Up(u.Report, time.Now())
	}
	if answered {
		return nil
	}
	if err := steer.Silent(ups, 0); err != nil {
		return err
	}
	return noUp()
}

// noUp returns the error of a search that has found no gateway.
func noUp() error {
	folder, err := health.Folder()
	if err != nil {
		return fmt.Errorf("find a patchbay up: %w", err)
	}
	f := &fault{Code: exitUnreachable, Err: fmt.Errorf("no patchbay up is running here; %s has no socket of one", folder)}
	return f.Hint("patchbay up, or -s URL for one of another user")
}

// askedUps returns the runs of up that the command line selects.
func (a *app) askedUps() ([]health.Found, error) {
	if a.Server == "" || a.Server == steer.Up {
		return health.Gateways(a.ctx)
	}
	u, err := url.Parse(a.Server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, usagef("-s %q is not the URL of a patchbay up", a.Server).Hint("patchbay status -s http://127.0.0.1:7420/mcp")
	}
	client := http.DefaultClient
	secure, err := clientTLS(a.withTLS(config.Server{Name: u.Host, URL: a.Server}))
	if err != nil {
		return nil, err
	}
	if secure != nil {
		client = &http.Client{Transport: tlsfiles.Transport(secure)}
	}
	report, err := health.Ask(a.ctx, client, u.Scheme+"://"+u.Host)
	if err != nil {
		f := &fault{Code: exitUnreachable, Err: fmt.Errorf("%s%w", netfault.Words(err), netfault.Quiet(err))}
		return nil, f.Hint("patchbay status shows those on this machine")
	}
	return []health.Found{{Report: report, Path: a.Server}}, nil
}
