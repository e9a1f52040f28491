package deploy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/yamlfile"
)

// AllView is the name of the view at the endpoint itself. A file with other views and without it has
// nothing there.
const AllView = "all"

// View is a part of the servers under a path of its own: what it has, for whom, and in which form.
type View struct {
	Name         string
	For          string   // condition on principal, as in the rules of a policy; empty: everybody
	Tools        []string // names with the prefix of the server, in which * stands for any text; empty: none
	Prompts      []string // likewise
	Resources    []string // URIs and URI templates, likewise
	Changes      []Change // of tools, in the order of the file
	Search       bool     // tools are found and called with three tools: mode search
	Budget       int64    // bytes of a result in this mode; default 32 KiB
	Instructions string   // empty: none, or those of the servers if the view has everything

	PromptChanges   []PromptChange   // in the order of the file
	ResourceChanges []ResourceChange // likewise
}

// Everything reports whether a view has all that the servers have: it gives neither Tools nor Prompts nor
// Resources, which are nil. Nil beside another one is the same as an empty list.
func (v *View) Everything() bool { return v.Tools == nil && v.Prompts == nil && v.Resources == nil }

// Changed reports whether a view changes what it has.
func (v *View) Changed() bool {
	return v.Changes != nil || v.PromptChanges != nil || v.ResourceChanges != nil
}

// Change is another form of a tool.
type Change struct {
	Tool                     string // its name, with the prefix of the server
	Hidden                   bool
	Name, Title, Description string         // empty: as they are
	Arguments                map[string]any // values that callers do not see and cannot set
}

// PromptChange is another form of a prompt.
type PromptChange struct {
	Prompt                   string // its name, with the prefix of the server
	Hidden                   bool
	Name, Title, Description string            // empty: as they are
	Arguments                map[string]string // descriptions, by the names of arguments
}

// ResourceChange is other texts for a resource or a resource template. Empty ones are as they are.
type ResourceChange struct {
	URI                      string // or the URI template
	Name, Title, Description string
}

const defaultBudget = 32 << 10

func (r *reader) views(n *yaml.Node) {
	r.note(n, "views")
	r.Members(n, "views", func(key, value *yaml.Node) {
		if key.Value == "" || strings.Trim(key.Value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" || strings.Trim(key.Value, ".") == "" {
			r.Fault(key, "use letters, digits, - and _", "the view %s cannot be part of a URL", yamlfile.Quote(key.Value))
			return
		}
		r.file.Views = append(r.file.Views, r.view(value, key.Value))
	})
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		r.Fault(n, "remove it", "views is empty")
	}
}

func (r *reader) view(n *yaml.Node, name string) View {
	of := "views." + name
	v := View{Name: name, Budget: defaultBudget}
	r.mapping(n, of, map[string]func(*yaml.Node){
		"for":          func(n *yaml.Node) { v.For = r.text(n, of+".for") },
		"tools":        func(n *yaml.Node) { v.Tools = r.patterns(n, of+".tools") },
		"prompts":      func(n *yaml.Node) { v.Prompts = r.patterns(n, of+".prompts") },
		"resources":    func(n *yaml.Node) { v.Resources = r.patterns(n, of+".resources") },
		"mode":         func(n *yaml.Node) { v.Search = r.word(n, of+".mode", "all", "search") == "search" },
		"budget":       func(n *yaml.Node) { v.Budget = r.budget(n, of+".budget") },
		"instructions": func(n *yaml.Node) { v.Instructions = r.text(n, of+".instructions") },
		"rename": func(n *yaml.Node) {
			r.note(n, of+".rename")
			r.Members(n, of+".rename", func(key, value *yaml.Node) {
				v.change(key.Value).Name = r.text(value, of+".rename."+key.Value)
			})
		},
		"promptChanges":   func(n *yaml.Node) { r.promptChanges(n, of+".promptChanges", &v) },
		"resourceChanges": func(n *yaml.Node) { r.resourceChanges(n, of+".resourceChanges", &v) },
		"changes": func(n *yaml.Node) {
			r.note(n, of+".changes")
			r.Members(n, of+".changes", func(key, value *yaml.Node) {
				at, c := of+".changes."+key.Value, v.change(key.Value)
				r.mapping(value, at, map[string]func(*yaml.Node){
					"name":        func(n *yaml.Node) { c.Name = r.text(n, at+".name") },
					"title":       func(n *yaml.Node) { c.Title = r.text(n, at+".title") },
					"description": func(n *yaml.Node) { c.Description = r.text(n, at+".description") },
					"hidden":      func(n *yaml.Node) { c.Hidden = r.word(n, at+".hidden", "true", "false") == "true" },
					"arguments": func(n *yaml.Node) {
						r.note(n, at+".arguments")
						if n.Kind != yaml.MappingNode || n.Decode(&c.Arguments) != nil {
							r.Fault(n, "arguments: {project: WEB}", "%s must be a mapping of arguments to their values", at+".arguments")
						}
					},
				})
			})
		},
	})
	if !v.Search && r.file.Has(of+".budget") {
		r.Fault(n, "add mode: search", "%s.budget needs the mode search", of)
	}
	return v
}

// change returns the change of a tool, a new one if there is none.
func (v *View) change(tool string) *Change {
	i := slices.IndexFunc(v.Changes, func(c Change) bool { return c.Tool == tool })
	if i < 0 {
		i = len(v.Changes)
		v.Changes = append(v.Changes, Change{Tool: tool})
	}
	return &v.Changes[i]
}

// patterns reads a list of names, which may be empty: the view then has none.
func (r *reader) patterns(n *yaml.Node, member string) []string {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.note(n, member)
		return []string{}
	}
	return r.list(n, member)
}

func (r *reader) promptChanges(n *yaml.Node, of string, v *View) {
	r.note(n, of)
	r.Members(n, of, func(key, value *yaml.Node) {
		at, c := of+"."+key.Value, PromptChange{Prompt: key.Value}
		r.mapping(value, at, map[string]func(*yaml.Node){
			"name":        func(n *yaml.Node) { c.Name = r.text(n, at+".name") },
			"title":       func(n *yaml.Node) { c.Title = r.text(n, at+".title") },
			"description": func(n *yaml.Node) { c.Description = r.text(n, at+".description") },
			"hidden":      func(n *yaml.Node) { c.Hidden = r.word(n, at+".hidden", "true", "false") == "true" },
			"arguments": func(n *yaml.Node) {
				r.note(n, at+".arguments")
				c.Arguments = map[string]string{}
				r.Members(n, at+".arguments", func(key, value *yaml.Node) { c.Arguments[key.Value] = r.text(value, at+".arguments."+key.Value) })
			},
		})
		v.PromptChanges = append(v.PromptChanges, c)
	})
}

func (r *reader) resourceChanges(n *yaml.Node, of string, v *View) {
	r.note(n, of)
	r.Members(n, of, func(key, value *yaml.Node) {
		at, c := of+"."+key.Value, ResourceChange{URI: key.Value}
		r.mapping(value, at, map[string]func(*yaml.Node){
			"name":        func(n *yaml.Node) { c.Name = r.text(n, at+".name") },
			"title":       func(n *yaml.Node) { c.Title = r.text(n, at+".title") },
			"description": func(n *yaml.Node) { c.Description = r.text(n, at+".description") },
		})
		v.ResourceChanges = append(v.ResourceChanges, c)
	})
}

// budget reads a size, or a number of tokens.
func (r *reader) budget(n *yaml.Node, member string) int64 {
	const least, most = 100, 10_000_000
	said := r.text(n, member)
	number, ok := strings.CutSuffix(said, " tokens")
	switch {
	case said == "":
		return 0
	case !ok:
		return r.size(n, member, 400, 1<<30)
	}
	tokens, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil || tokens < least || tokens > most {
		r.Fault(n, fmt.Sprintf("use %d to %d tokens", least, most), "%s is %s, out of bounds", member, r.shown(n, said))
		return 0
	}
	return text.BytesOfToken * int64(tokens)
}
