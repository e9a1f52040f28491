package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

func TestRequire(t *testing.T) {
	r := &policy.Require{
		All:       policy.Requirement{Scopes: []string{"base"}},
		Tools:     map[string]policy.Requirement{"refund": {Scopes: []string{"refund"}}, "erase": {Roles: []string{"admin"}}, "both": {Scopes: []string{"x"}, Roles: []string{"admin"}}, "*": {Scopes: []string{"tools"}}},
		Prompts:   map[string]policy.Requirement{"p": {Scopes: []string{"p"}}},
		Resources: map[string]policy.Requirement{"db://users/me": {Scopes: []string{"me"}}, "*": {Scopes: []string{"rest"}}},
		Templates: map[string]policy.Requirement{"db://users/{id}": {Scopes: []string{"users"}}},
		Tasks:     policy.Requirement{Scopes: []string{"tasks"}},
	}
	tool := func(name string) policy.Access {
		return policy.Access{Kind: mcp.KindTool, Name: name, Method: "tools/call"}
	}
	task := tool("refund")
	task.Method, task.Partial = "tasks/get", true
	resource := func(uri string) policy.Access { return policy.Access{Kind: mcp.KindResource, Name: uri} }
	tests := []struct {
		name          string
		a             policy.Access
		scopes, roles string
		want          string // the scopes that are named, "ok" for allowed, "no" for refused for good
	}{
		{"all that is needed is named, not what is missing", tool("refund"), "base", "", "base refund"},
		{"with it", tool("refund"), "base refund", "", "ok"},
		{"what all need", tool("refund"), "refund", "", "base refund"},
		{"others", tool("other"), "base", "", "base tools"},
		{"a role cannot be asked for", tool("erase"), "base", "", "no"},
		{"with it", tool("erase"), "base", "admin", "ok"},
		{"scopes do not help who lacks the role", tool("both"), "base", "", "no"},
		{"scopes help who has the role", tool("both"), "base", "admin", "base x"},
		{"a prompt", policy.Access{Kind: mcp.KindPrompt, Name: "p"}, "base", "", "base p"},
		{"a prompt without an entry", policy.Access{Kind: mcp.KindPrompt, Name: "q"}, "base", "", "ok"},
		{"a task of it", task, "base refund", "", "base refund tasks"},
		{"a task of any tool", policy.Access{Kind: mcp.KindTool, Method: "tasks/get", Partial: true}, "base tasks", "", "ok"},
		{"a resource of a template", resource("db://users/7"), "base", "", "base users"},
		{"one that is listed and of a template", resource("db://users/me"), "base users", "", "base me users"},
		{"another", resource("mem://x"), "base", "", "base rest"},
		{"a template", policy.Access{Kind: mcp.KindResource, Template: "db://users/{id}", Partial: true}, "base", "", "base users"},
		{"a template without an entry", policy.Access{Kind: mcp.KindResource, Template: "db://{x}", Partial: true}, "base", "", "ok"},
		{"a method of an extension", policy.Access{Name: "x/y"}, "", "", "base"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.a.Principal = &auth.Principal{ID: "ada", Scopes: strings.Fields(tt.scopes), Roles: strings.Fields(tt.roles)}
			d := r.Decide(t.Context(), &tt.a)
			got := strings.Join(d.Scopes, " ")
			switch {
			case d.Allow:
				got = "ok"
			case d.Scopes == nil:
				got = "no"
			}
			if got != tt.want {
				t.Errorf("Decide = %+v, want %s", d, tt.want)
			}
			if d.Show {
				t.Error("it is shown")
			}
		})
	}

	// An unauthenticated caller gets all scopes: logging in may help.
	erase := tool("erase")
	if d := r.Decide(t.Context(), &erase); d.Allow || !slices.Equal(d.Scopes, []string{"base"}) {
		t.Errorf("nobody: %+v", d)
	}
	if d := (&policy.Require{Tools: map[string]policy.Requirement{"erase": {Roles: []string{"admin"}}}}).Decide(t.Context(), &erase); d.Allow || d.Scopes == nil {
		t.Errorf("nobody, who needs a role: %+v", d)
	}
	r = &policy.Require{Show: true, Tools: r.Tools}
	erase.Name, erase.Principal = "refund", &auth.Principal{ID: "ada"}
	if d := r.Decide(t.Context(), &erase); !d.Show {
		t.Errorf("with Show: %+v", d)
	}

	// An invalid template is an error, and refuses instead of allowing.
	r = &policy.Require{Templates: map[string]policy.Requirement{"db://{": {}}}
	if err := r.Check(); err == nil {
		t.Error("Check finds nothing wrong")
	}
	uri := resource("db://x")
	if d := r.Decide(t.Context(), &uri); d.Allow || d.Err == nil {
		t.Errorf("with a template that is none: %+v", d)
	}
}
