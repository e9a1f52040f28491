package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/urimatch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Requirement holds the scopes and roles that a caller must have. The zero value requires nothing.
type Requirement struct {
	Scopes []string // all of them
	Roles  []string // all of them
}

// Require is a policy as data: the requirement of each feature. "*" is the entry for all names without
// an entry of their own. A feature without any entry needs only All. Fields must not change after
// the first decision.
//
// An entry for a tool or prompt that no server lists, such as a misspelt one, is logged once at
// Warn, when all servers with a [Middleware] of the policy have been listed.
//
// A caller that lacks only scopes is told which scopes are required. If it lacks a role too, it is
// told nothing, because a role cannot be requested. An unauthenticated caller is told all the
// required scopes, even if a role is required too, because it may have the role after logging in.
type Require struct {
	All     Requirement            // every feature
	Tools   map[string]Requirement // by name
	Prompts map[string]Requirement // by name

	// Resources are by URI. Templates are by URI template, and are for all URIs that match
	// them, listed or not.
	Resources, Templates map[string]Requirement

	// Tasks is the requirement of requests about tasks, in addition to that of their tools.
	Tasks Requirement

	// Show keeps features that more scopes would allow in lists.
	Show bool

	once     sync.Once
	families []family // of Templates
	fault    error

	unlisted unlisted
}

// namesOf returns the entries of the policy for a list.
func (r *Require) namesOf(l *featureList) map[string]Requirement {
	switch l {
	case toolList:
		return r.Tools
	case promptList:
		return r.Prompts
	}
	return nil
}

// family is the URIs of a template.
type family struct {
	match *urimatch.Template
	need  Requirement
}

// Check returns the error in Templates, if there is one. With such an error all resources are
// refused.
func (r *Require) Check() error {
	r.once.Do(func() {
		for template, need := range r.Templates {
			if template == "*" {
				continue
			}
			match, err := urimatch.New(template)
			if err != nil {
				r.fault = errors.Join(r.fault, fmt.Errorf("policy: Require.Templates: %q is not a URI template: %w", text.Short(template), err))
				continue
			}
			r.families = append(r.families, family{match, need})
		}
	})
	return r.fault
}

// Version returns r, whose fields do not change.
func (r *Require) Version() any { return r }

// Decide allows the access if the caller has all the scopes and roles that r requires.
func (r *Require) Decide(_ context.Context, a *Access) Decision {
	if err := r.Check(); err != nil && a.Kind == mcp.KindResource {
		return Decision{Rule: "require", Err: err}
	}
	need := r.needs(a)
	lacksScope := slices.ContainsFunc(need.Scopes, func(s string) bool { return !a.Principal.HasScope(s) })
	lacksRole := slices.ContainsFunc(need.Roles, func(s string) bool { return !a.Principal.HasRole(s) })
	d := Decision{Allow: !lacksScope && !lacksRole, Rule: "require"}
	switch {
	case d.Allow:
	case a.Principal == nil:
		d.Scopes = append([]string{}, need.Scopes...) // not nil: logging in may help
	case !lacksRole:
		d.Scopes = need.Scopes
	}
	d.Show = r.Show && d.Scopes != nil
	return d
}

// needs returns the union of all needs that apply to an access.
func (r *Require) needs(a *Access) Requirement {
	all := r.All
	add := func(n Requirement) {
		all.Scopes = union(all.Scopes, n.Scopes)
		all.Roles = union(all.Roles, n.Roles)
	}
	switch a.Kind {
	case mcp.KindTool:
		add(named(r.Tools, a.Name))
		if strings.HasPrefix(a.Method, "tasks/") {
			add(r.Tasks)
		}
	case mcp.KindPrompt:
		add(named(r.Prompts, a.Name))
	case mcp.KindResource:
		if a.Template != "" {
			add(named(r.Templates, a.Template))
			break
		}
		n, listed := r.Resources[a.Name]
		add(n)
		for _, f := range r.families {
			// A URI that cannot be matched needs the union of all templates that it may match.
			if values, err := f.match.Match(a.Name); values != nil || err != nil {
				listed = true
				add(f.need)
			}
		}
		if !listed {
			add(r.Resources["*"])
		}
	}
	return all
}

// named returns the entry of a name. An unknown name, which is empty, has no entry of its own.
func named(by map[string]Requirement, name string) Requirement {
	if n, ok := by[name]; ok || name == "" {
		return n
	}
	return by["*"]
}

// union returns the union of a and b. It changes neither.
func union(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	out := a[:len(a):len(a)]
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
