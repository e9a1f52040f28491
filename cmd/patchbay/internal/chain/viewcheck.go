package chain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
)

// views checks the views of the file.
func (c *check) views(p *Program) {
	for i := range c.file.Views {
		v := &c.file.Views[i]
		member := "views." + v.Name
		if _, err := viewOf(v, p); err != nil {
			if text, isCondition := strings.CutPrefix(err.Error(), "for: "); isCondition {
				c.fault(member+".for", "write it like '\"support\" in principal.roles'", "%s.for: %s", member, text)
				continue
			}
			at := c.place(v, err.Error())
			c.fault(at, "", "%s: %v", at, err)
			continue
		}
		warn := func(member, text, fix string) {
			c.file.Warnings = append(c.file.Warnings, c.file.Problem(member, text, fix))
		}
		if v.Everything() {
			continue
		}
		if len(v.Tools)+len(v.Prompts)+len(v.Resources) == 0 {
			warn(member, "view "+strconv.Quote(v.Name)+" has nothing: all its lists are empty", `tools: ["*"] has all tools`)
			continue
		}
		for _, ch := range changesOf(v) {
			if !ch.in(v) {
				warn(c.changed(v, &ch), fmt.Sprintf("view %q does not have the %s %q, so the change of it has no effect", v.Name, ch.kind, ch.name), "add it to "+ch.list+", or remove the change")
			}
		}
		var without []string
		for _, list := range []struct {
			name string
			of   []string
		}{{"tools", v.Tools}, {"prompts", v.Prompts}, {"resources", v.Resources}} {
			if list.of == nil {
				without = append(without, list.name)
			}
		}
		if len(without) > 0 {
			c.file.Notes = append(c.file.Notes, c.file.Problem(member, fmt.Sprintf("view %q has no %s", v.Name, strings.Join(without, " and no ")), fmt.Sprintf(`write %s: ["*"] for all, or [] if it should have none`, without[0])))
		}
	}
}

// change is the place of a change in a view.
type change struct {
	kind, list, member string // such as "tool", "tools" and "changes"
	name               string // that the gateway has
	new                string // that callers use; empty: the same
	method             string // of the list that has it
	hidden             bool
}

// changesOf returns the changes of a view, in the order of the file for each kind.
func changesOf(v *deploy.View) (all []change) {
	for _, c := range v.Changes {
		all = append(all, change{"tool", "tools", "changes", c.Tool, c.Name, "tools/list", c.Hidden})
	}
	for _, c := range v.PromptChanges {
		all = append(all, change{"prompt", "prompts", "promptChanges", c.Prompt, c.Name, "prompts/list", c.Hidden})
	}
	for _, c := range v.ResourceChanges {
		one := change{kind: "resource", list: "resources", member: "resourceChanges", name: c.URI, method: "resources/list"}
		if strings.Contains(c.URI, "{") {
			one.method = "resources/templates/list"
		}
		all = append(all, one)
	}
	return all
}

// in reports whether the view has the feature, if a server does.
func (ch *change) in(v *deploy.View) bool { return has(v, ch.kind, ch.name) }

// has reports whether a view has a feature, if a server does.
func has(v *deploy.View, kind, name string) bool {
	patterns := map[string][]string{"tool": v.Tools, "prompt": v.Prompts, "resource": v.Resources}[kind]
	return v.Everything() || slices.ContainsFunc(patterns, func(pattern string) bool { return wildcard.Match(pattern, name) })
}

// changed returns the member of the file with a change.
func (c *check) changed(v *deploy.View, ch *change) string { return changedIn(c.file, v, ch) }

func changedIn(f *deploy.File, v *deploy.View, ch *change) string {
	of := "views." + v.Name + "."
	for _, member := range []string{of + "rename." + ch.name, of + ch.member + "." + ch.name + ".name"} {
		if f.Has(member) && ch.new != "" {
			return member
		}
	}
	return of + ch.member + "." + ch.name
}

// place returns the member that a fault of a view is about: the last change that it names.
func (c *check) place(v *deploy.View, fault string) string {
	for _, ch := range slices.Backward(changesOf(v)) {
		if strings.HasPrefix(fault, "the "+ch.kind) && strings.Contains(fault, strconv.Quote(ch.name)) {
			return c.changed(v, &ch)
		}
	}
	return "views." + v.Name
}
