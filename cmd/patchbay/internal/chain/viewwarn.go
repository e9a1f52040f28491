package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/feature"
)

// keptLists are the lists that views are compared with.
var keptLists = feature.All

// kept is what Gateway.Kept returns for keptLists at one moment.
type kept [len(keptLists)]json.RawMessage

// kept returns what the gateway keeps now: last, if it is still the same.
func (v *Views) kept(last *kept) *kept {
	now := new(kept)
	for i, list := range keptLists {
		now[i] = v.gateway.Kept(list.Method).JSON()
	}
	if last != nil && slices.EqualFunc(last[:], now[:], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		return last
	}
	return now
}

// told is what Warn has printed. The zero value is ready for use.
type told struct {
	mu   sync.Mutex
	of   *kept           // guarded by mu
	set  *viewSet        // guarded by mu
	keys map[string]bool // of the last warnings; guarded by mu
}

// Warn prints what is wrong with the views, as far as the lists tell that the gateway has seen. It prints
// nothing twice while that is so.
func (v *Views) Warn() {
	t := &v.told
	if !t.mu.TryLock() { // another request does it
		return
	}
	defer t.mu.Unlock()
	now, of := v.now.Load(), v.kept(t.of)
	if t.of == of && t.set == now {
		return
	}
	before := t.keys
	t.of, t.set, t.keys = of, now, map[string]bool{}
	for _, w := range v.warnings(now, of) {
		if t.keys[w.key] = true; !before[w.key] && v.chain.program.Talk != nil {
			v.chain.program.Talk.Note("warning: %s", w.Problem)
		}
	}
}

// warning is one about a view of the file.
type warning struct {
	view int
	key  string // equal for the same warning with another number
	deploy.Problem
}

// warnings returns what is wrong with views, in the order of the file: a view without any tool, a change of
// what no server has, a tool that is not in the view because another one has got its name.
func (v *Views) warnings(now *viewSet, of *kept) (all []warning) {
	if now.of == nil {
		return nil
	}
	listed := map[string]map[string]bool{} // names by method
	for i, list := range keptLists {
		listed[list.Method] = namesOf(of[i], list)
	}
	for i := range now.file {
		one := &now.file[i]
		say := func(member, key, fix, format string, args ...any) {
			all = append(all, warning{i, member + " " + key, now.of.Problem(member, fmt.Sprintf("view %q ", one.Name)+fmt.Sprintf(format, args...), fix)})
		}
		changes := changesOf(one)
		if tools := listed[feature.Tools.Method]; len(tools) > 0 && len(one.Prompts)+len(one.Resources) == 0 && !anyShown(one, changes, tools) {
			say("views."+one.Name, "empty", "patchbay tools lists their names, which begin with that of the server", "has none of the %d tools that the servers list now", len(tools))
		}
		for j := range changes {
			ch := &changes[j]
			at, names := changedIn(now.of, one, ch), listed[ch.method]
			switch why := v.missing(ch, names); {
			case !ch.in(one):
				say(at, "outside", "add it to "+ch.list+", or remove the change", "does not have the %s %q, so the change of it has no effect", ch.kind, ch.name)
			case why != "":
				say(at, "missing", "correct the name, or remove the change", "changes the %s %q, which %s", ch.kind, ch.name, why)
			}
			if ch.new != "" && !ch.hidden && names[ch.new] && has(one, ch.kind, ch.new) && !slices.ContainsFunc(changes, func(c change) bool { return c.kind == ch.kind && c.name == ch.new }) {
				say(at, "taken", "use another name", "does not have the %s %q of a server, because %q is renamed to that", ch.kind, ch.new, ch.name)
			}
		}
	}
	return all
}

// anyShown reports whether a view has any of the tools.
func anyShown(one *deploy.View, changes []change, tools map[string]bool) bool {
	for name := range tools {
		hidden := slices.ContainsFunc(changes, func(c change) bool { return c.kind == "tool" && c.name == name && c.hidden })
		if !hidden && has(one, "tool", name) {
			return true
		}
	}
	return false
}

// missing says why no server has what a change is of; empty: one has it, or its lists are not known yet.
func (v *Views) missing(ch *change, names map[string]bool) string {
	if names[ch.name] {
		return ""
	}
	if ch.kind == "resource" {
		if len(names) == 0 {
			return ""
		}
		return "no server lists"
	}
	server, _ := v.gateway.Owner(ch.name)
	if server == "" {
		return "no server offers"
	}
	for name := range names {
		if of, _ := v.gateway.Owner(name); of == server {
			return fmt.Sprintf("server %q does not list", server)
		}
	}
	return ""
}

// namesOf returns the names or the URIs of a list.
func namesOf(raw json.RawMessage, list feature.List) map[string]bool {
	names := map[string]bool{}
	for name := range entries(raw, list) {
		names[name] = true
	}
	return names
}
