package chain

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config/deploy"
)

// Faults of views have their places, and the names of the file alone.
func TestViewFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	p, _ := program()
	for _, tt := range []struct{ views, fault string }{
		{"{tools: [a, b], rename: {a: b}}", `:3:34: views.v.rename.a: the tool "a" cannot be named "b": the view has a tool of that name; rename or hide that one too, or use another name`},
		{"{tools: [a, b], rename: {a: b}, changes: {b: {hidden: true}}}", ""},
		{"{tools: [a, b], rename: {a: b, b: a}}", ""},
		{"{rename: {a: c, b: c}}", `:3:25: views.v.rename.b: the tools "a" and "b" are both named "c"`},
		{"{rename: {a: x y}}", `:3:19: views.v.rename.a: the tool "a" cannot be named "x y": the name has the character ' '; use letters`},
		{"{changes: {a: {name: ä}}}", `:3:27: views.v.changes.a.name: the tool "a" cannot be named "ä"`},
		{"{mode: search, rename: {a: find_tools}}", `the tool "a" cannot be named "find_tools": the search has`},
		{"{prompts: [a, b], promptChanges: {a: {title: x, name: b}}}", `:3:60: views.v.promptChanges.a.name: the prompt "a" cannot be named "b"`},
		{"{promptChanges: {a: {name: c}, b: {name: c}}}", `views.v.promptChanges.b.name: the prompts "a" and "b" are both named "c"`},
	} {
		write(t, path, "listen: {http: 127.0.0.1:1}\nviews:\n  v: "+tt.views+"\n")
		_, err := p.Load(path)
		if err == nil && tt.fault == "" {
			continue
		}
		if err == nil || tt.fault == "" || !strings.Contains(err.Error(), tt.fault) || strings.Contains(err.Error(), "middleware") {
			t.Errorf("%s: %v, want %s", tt.views, err, tt.fault)
		}
	}
}

// A check warns of what has no effect, and notes what a view does not have unless the file says so itself.
func TestViewWarnings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	p, _ := program()
	for _, tt := range []struct{ views, warning, note string }{
		{"{}", "", ""},
		{"{rename: {a: b}}", "", ""},
		{"{tools: [a]}", "", `:2:6: view "v" has no prompts and no resources; write prompts: ["*"] for all, or [] if it should have none`},
		{"{tools: [a], prompts: [], resources: []}", "", ""},
		{"{tools: [a], resources: []}", "", `view "v" has no prompts; write prompts:`},
		{"{prompts: []}", `:2:6: view "v" has nothing: all its lists are empty; tools: ["*"] has all tools`, ""},
		{"{tools: [a_*], prompts: [], resources: [], rename: {b_x: c}}", `:2:63: view "v" does not have the tool "b_x", so the change of it has no effect; add it to tools, or remove the change`, ""},
		{"{tools: [a_*], prompts: [a_*], resources: ['a:*'], promptChanges: {a_x: {title: x}}, resourceChanges: {'a://x': {title: x}}}", "", ""},
		{"{tools: [], prompts: [], resources: ['a:*'], promptChanges: {a_x: {title: x}}}", `does not have the prompt "a_x"`, ""},
		{"{tools: [], prompts: [], resources: ['a:*'], resourceChanges: {'b:{x}': {title: x}}}", `does not have the resource "b:{x}"`, ""},
	} {
		write(t, path, "views:\n  v: "+tt.views+"\n")
		f, err := p.Check(path, false)
		if err != nil {
			t.Errorf("%s: %v", tt.views, err)
			continue
		}
		for _, c := range []struct {
			got  deploy.Problems
			want string
		}{{f.Warnings, tt.warning}, {f.Notes, tt.note}} {
			if c.want == "" && len(c.got) > 0 || c.want != "" && (len(c.got) != 1 || !strings.Contains(c.got[0].String(), c.want)) {
				t.Errorf("%s: %v, want %q", tt.views, c.got, c.want)
			}
		}
	}
}
