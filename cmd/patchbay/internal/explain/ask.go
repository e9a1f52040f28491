package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/verdict"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/launch"
)

// Ask gets the tools and the states of the servers from a running up of this user with the same mcp.json; the
// oldest one. Without one it does nothing.
func (d *Deployment) Ask(ctx context.Context) error {
	ups, err := steer.Running(ctx)
	if err != nil {
		return err
	}
	for _, up := range ups {
		if same(up.From, d.Servers.Path) && (filepath.IsAbs(up.From) || d.has(up.Servers)) {
			return d.ask(ctx, up)
		}
	}
	return nil
}

// same reports whether two paths are those of one file.
func same(a, b string) bool {
	return filepath.Base(a) == filepath.Base(b) && ownfile.RealPath(a) == ownfile.RealPath(b)
}

// has reports whether these are the servers of the deployment. A relative path alone does not say which file it
// is.
func (d *Deployment) has(list []health.Server) bool {
	var theirs, ours []string
	for _, s := range list {
		theirs = append(theirs, s.Name)
	}
	for _, s := range launch.Offer(launch.Enabled(d.Servers)) {
		ours = append(ours, s.Name)
	}
	slices.Sort(theirs)
	slices.Sort(ours)
	return slices.Equal(theirs, ours)
}

func (d *Deployment) ask(ctx context.Context, up health.Found) error {
	d.Source = fmt.Sprintf("the running patchbay up (pid %d)", up.PID)
	d.Lists, d.States, d.Shares = map[string][]json.RawMessage{}, map[string]string{}, map[string]string{}
	client := steer.Over(up)
	for _, s := range up.Servers {
		d.States[s.Name], d.Shares[s.Name] = s.State, s.Share
		tools, err := client.Tools(ctx, s.Name)
		if err != nil {
			return fmt.Errorf("the tools of %s are not known: %w", s.Name, err)
		}
		if tools != nil {
			d.Lists[s.Name] = tools
		}
	}
	return nil
}

// Annotations reads the annotations of a tool from words, each NAME=VALUE, as patchbay policy check does; nil:
// there are none.
func Annotations(words []string) (json.RawMessage, error) {
	if len(words) == 0 {
		return nil, nil
	}
	if _, err := verdict.Annotations(words); err != nil {
		return nil, err
	}
	out := json.RawMessage("{}")
	for _, text := range words {
		name, value, given := strings.Cut(text, "=")
		raw := []byte(value)
		switch {
		case !given:
			raw = []byte("true")
		case name == "title":
			raw = jsonx.AppendString(nil, value)
		case name == "audience":
			continue // of resources
		}
		out = jsonx.With(nil, out, name, raw)
	}
	return out, nil
}
