package install

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

// Gateway is the server that is written into the files.
type Gateway struct {
	Name   string
	URL    string
	Header http.Header
}

// At returns the URL of a view of a running gateway; empty: of all that it serves.
func At(u *health.Found, view string) (string, error) {
	at, err := steer.Endpoint(u)
	if err != nil || view == "" {
		return at, err
	}
	base, _, _ := strings.Cut(at, "/v/")
	var names []string
	for _, v := range u.Views {
		if v.Name == view && v.Name != "all" {
			return base + "/v/" + view, nil
		} else if v.Name == view {
			return base, nil
		}
		names = append(names, v.Name)
	}
	return "", advice.Usagef("the patchbay up with pid %d has no view %q; views: %s", u.PID, view, cmp.Or(strings.Join(names, ", "), "none"))
}

// listing returns the server in the form of mcp.json. Secrets in headers become variables of the host.
func (g *Gateway) listing(t *Target) (*hosts.Listing, error) {
	l := new(hosts.Listing)
	headers := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(g.Header)) {
		value := g.Header.Get(name)
		if !secrets.Header(name) || strings.Contains(value, "${") {
			headers[name] = value
			continue
		}
		switch {
		case t.Host.Inputs():
			id := g.Name + "-" + strings.ToLower(name)
			raw, err := jsonx.Marshal(struct {
				Type        string `json:"type"`
				ID          string `json:"id"`
				Description string `json:"description"`
				Password    bool   `json:"password"`
			}{"promptString", id, "Header " + name + " of " + g.Name, true})
			if err != nil {
				return nil, err
			}
			l.Inputs = append(l.Inputs, raw)
			headers[name] = "${input:" + id + "}"
			l.Notes = append(l.Notes, fmt.Sprintf("%s asks for the header %s: the value is not in the file", t.Host.Title, name))
		case t.Host.Variables():
			variable := hosts.Variable(g.Name + "_" + name)
			before, _, scheme := strings.Cut(value, " ")
			if headers[name] = "${" + variable + "}"; scheme && (before == "Bearer" || before == "Basic") {
				headers[name] = before + " ${" + variable + "}"
				l.Notes = append(l.Notes, fmt.Sprintf("set the environment variable %s for %s to the part of the header %s after %q: the value is not in the file", variable, t.Host.Title, name, before))
				continue
			}
			l.Notes = append(l.Notes, fmt.Sprintf("set the environment variable %s for %s to the header %s: the value is not in the file", variable, t.Host.Title, name))
		case t.Scope == "project":
			return nil, advice.Usagef("%s has neither variables nor inputs, so the header %s would be plain text in %s, which others may read", t.Host.Title, name, t.Path)
		default:
			headers[name] = value
			l.Notes = append(l.Notes, fmt.Sprintf("%s has neither variables nor inputs: %s holds the header %s as plain text", t.Host.Title, t.Path, name))
		}
	}
	entry := struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
	}{"http", g.URL, headers}
	raw, err := jsonx.Marshal(entry)
	l.Servers = []config.Entry{{Name: g.Name, Object: raw}}
	return l, err
}

// Masked replaces the values of secret headers in a text.
func (g *Gateway) Masked(text string) string {
	for name, values := range g.Header {
		if secrets.Header(name) {
			for _, v := range values {
				text = strings.ReplaceAll(text, v, "***")
			}
		}
	}
	return text
}

// Where has the flags that name a server in files of hosts.
type Where struct {
	Hosts   []string `arg:"" name:"host" help:"The hosts."`
	Name    string   `default:"patchbay" placeholder:"NAME" help:"Name of the server in the files."`
	Project bool     `help:"Change the file of the host in this folder, not your own."`
}

// Scope returns "user" or "project".
func (w *Where) Scope() string {
	if w.Project {
		return "project"
	}
	return "user"
}

// How says how Install works.
type How struct {
	Force, Dry bool
	Print      func(line string)                // gets the changes
	Note       func(format string, args ...any) // gets remarks
}

// Install writes a gateway into files: into none if any of them cannot be changed, except those that a
// person has to change, whose lines it prints.
func (g *Gateway) Install(targets []*Target, how *How) error {
	var changes []*Change
	for _, t := range targets {
		c, err := t.Plan(g, how.Force)
		var byHand *ByHand
		switch {
		case errors.As(err, &byHand):
			how.Note("%v; add these lines to it:", err)
			for _, line := range split([]byte(byHand.Lines)) {
				how.Print(g.Masked(line))
			}
			continue
		case err != nil:
			return err
		}
		changes = append(changes, c)
	}
	for _, c := range changes {
		if c.Nothing() {
			how.Print(c.Path + " has " + c.Name + " already")
			continue
		}
		if how.Dry {
			how.Print("would change " + c.Path + ":")
		} else if err := c.Write(); err != nil {
			return err
		} else {
			how.Print("added " + c.Name + " to " + c.Path + ":")
		}
		for _, line := range c.Lines() {
			how.Print("  " + g.Masked(line))
		}
		for _, note := range c.Notes {
			how.Note("%s", note)
		}
		if !how.Dry {
			how.Print("undo: " + c.UndoCommand())
		}
	}
	return nil
}
